package store

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// Client is a member's place in the queue for the lead: the member with the oldest key leads,
// and each other watches the one before it. To be able to name the leader, it also watches the
// oldest key; the recipes leave that to whoever asks. Whoever embeds it keeps its lease.
type Client struct {
	*member.Member
	API     *API
	TTL     time.Duration
	Oldest  string         // why the member with the oldest key leads
	Session uint64         // the lease; 0 for none
	Sent    algorithm.Time // when the newest request was

	key     uint64 // this member's; 0 for none
	watches []uint64
	xid     uint64
	pending Request // the request that waits for its answer; zero if all are answered
}

// Begin asks the store for a lease of the inactivity interval.
func Begin(m *member.Member, api *API, oldest string) Client {
	c := Client{Member: m, API: api, TTL: m.Timing.Inactivity(), Oldest: oldest}
	c.NewSession("start")
	return c
}

// NewSession gives up the lease, and the key with it, and asks for another.
func (c *Client) NewSession(why string) {
	c.Session, c.key, c.watches = 0, 0, nil
	c.See(elector.Candidate, Key{}, why)
	c.Call(c.API.Grant)
}

// Call asks for what has an answer. What was asked before does not count any more.
func (c *Client) Call(kind string) {
	c.xid++
	c.pending = Request{Kind: kind, Xid: c.xid, Lease: c.Session}
	switch kind {
	case c.API.Grant:
		c.pending.TTL = c.TTL
	case c.API.Watch:
		c.pending.Watches = c.watches
	}
	c.post(c.pending)
}

// KeepAlive renews the lease.
func (c *Client) KeepAlive() { c.post(Request{Kind: c.API.KeepAlive, Lease: c.Session}) }

func (c *Client) post(r Request) {
	c.Sent = c.Now
	c.Send(member.Store, r)
}

// Input asks again, over a new connection to the store, for what has no answer, and for what it
// watches, and ends the lease with the process.
func (c *Client) Input(in algorithm.Input) {
	up, _ := in.(elector.LinkUp)
	_, stop := in.(elector.Stop)
	switch connected := up.Peer == algorithm.StoreNode; {
	case stop:
		c.Call(c.API.Revoke)
	case connected && c.pending.Xid != 0:
		c.post(c.pending)
	case connected && len(c.watches) > 0:
		c.Call(c.API.Watch)
	}
}

// Answered reports whether a message answers the pending request.
func (c *Client) Answered(msg algorithm.Message) bool {
	r, ok := msg.(Reply)
	return ok && r.Xid != 0 && r.Xid == c.pending.Xid
}

// Hear goes on with the recipe.
func (c *Client) Hear(msg algorithm.Message) {
	if e, ok := msg.(Event); ok && slices.Contains(c.watches, e.Key) {
		c.watches = nil
		c.Call(c.API.List)
	}
	if !c.Answered(msg) {
		return
	}
	r, kind := msg.(Reply), c.pending.Kind
	c.pending = Request{}
	switch kind {
	case c.API.Grant:
		if c.Session = r.Lease; c.key != 0 {
			c.Call(c.API.List)
		} else {
			c.Call(c.API.Create)
		}
	case c.API.Create:
		c.key = r.Created
		c.Call(c.API.List)
	case c.API.List:
		c.queue(r.Keys)
	}
}

// queue finds this member's place in the queue.
func (c *Client) queue(keys []Key) {
	own := slices.IndexFunc(keys, func(k Key) bool { return k.Created == c.key })
	c.watches = nil
	if own == 0 {
		c.See(elector.Leader, keys[0], c.Oldest)
		return
	}
	c.watches = append(c.watches, keys[0].Created)
	if own > 1 {
		c.watches = append(c.watches, keys[own-1].Created)
	}
	c.See(elector.Follower, keys[0], "another key is older")
	c.Call(c.API.Watch)
}

// See takes a new view. A leadership of this member by a lease that it has given up does not
// count.
func (c *Client) See(role elector.Role, leader Key, why string) {
	rank := c.Rank(leader.Client)
	if rank == c.Self && role != elector.Leader {
		rank, leader.Created = member.Nobody, 0
	}
	c.Term = lsn.Term(leader.Created)
	c.Become(role, rank, why)
}

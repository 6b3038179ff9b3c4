// Package queue is what the clients of the modelled stores have in common: how they ask, and
// the recipe by which the member with the oldest key leads, and each other watches the one
// before it. To be able to name the leader, a member also watches the oldest key; the
// recipes leave that to whoever asks.
package queue

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store"
	"github.com/bmqelect/bmqelect/lsn"
)

// Client is a member's place in the queue for the lead. Whoever embeds it keeps its lease.
type Client struct {
	Self    algorithm.NodeID
	API     store.API
	TTL     time.Duration
	Lease   uint64        // 0 for none
	Pending store.Request // has no answer yet; no Op if there is none
	Sent    algorithm.Time
	Effects algorithm.Effects

	key     uint64 // this member's; 0 for none
	watches []uint64
	view    algorithm.View
	xid     uint64 // of the newest request
	since   uint64 // replies to requests before this one are void
}

// View implements algorithm.Machine.
func (c *Client) View() algorithm.View { return c.view }

// Boot begins a process. Its requests are numbered apart from those of the one before, as good
// as surely: replies to those are outside of what Counts allows.
func (c *Client) Boot(entropy uint64) { c.xid = entropy >> 1 }

// Clear empties the effects.
func (c *Client) Clear() {
	c.Effects = algorithm.Effects{Messages: c.Effects.Messages[:0], Wake: elector.Never}
}

// Connect asks for a lease, or, where the API has it, for a new connection with the lease.
// Answers to what was asked before do not count any more.
func (c *Client) Connect(now algorithm.Time) {
	c.since = c.xid + 1
	c.Call(now, store.Grant)
}

// Call sends a request that is repeated until it is answered: it is Pending.
func (c *Client) Call(now algorithm.Time, op store.Op) {
	c.xid++
	c.Pending = store.Request{API: c.API, Op: op, Xid: c.xid, Lease: c.Lease}
	switch op {
	case store.Grant:
		c.Pending.TTL = c.TTL
	case store.Watch:
		c.Pending.Watches = c.watches
	}
	c.Send(now, c.Pending)
}

// KeepAlive renews the lease.
func (c *Client) KeepAlive(now algorithm.Time) {
	c.xid++
	c.Send(now, store.Request{API: c.API, Op: store.KeepAlive, Xid: c.xid, Lease: c.Lease,
		Watches: c.watches})
}

// Send sends a request, for the first time or again.
func (c *Client) Send(now algorithm.Time, r store.Request) {
	c.Sent = now
	c.Effects.Messages = append(c.Effects.Messages,
		algorithm.Envelope{To: algorithm.StoreNode, Message: r})
}

// Counts reports whether a message answers this life, lease and connection of the client.
func (c *Client) Counts(m algorithm.Message) bool {
	switch m := m.(type) {
	case store.Event:
		return slices.Contains(c.watches, m.Deleted)
	case store.Reply:
		return c.since <= m.Xid && m.Xid <= c.xid
	}
	return false
}

// NewSession gives up the lease, and the key with it, and asks for another.
func (c *Client) NewSession(now algorithm.Time, why string) {
	c.Lease, c.key, c.watches = 0, 0, nil
	c.See(elector.Candidate, store.Key{}, why)
	c.Connect(now)
}

// Answered goes on with the recipe when a request was answered. leads is why the oldest key
// leads.
func (c *Client) Answered(now algorithm.Time, r store.Reply, leads string) {
	if r.Xid != c.Pending.Xid {
		return
	}
	c.Pending = store.Request{}
	switch r.Op {
	case store.Grant:
		c.Lease = r.Lease
		if c.key != 0 {
			c.Call(now, store.List)
		} else {
			c.Call(now, store.Create)
		}
	case store.Create:
		c.key = r.Created
		c.Call(now, store.List)
	case store.List:
		c.queue(now, r.Keys, leads)
	}
}

// Deleted reads the keys again, when one that is watched is gone.
func (c *Client) Deleted(now algorithm.Time) {
	c.watches = nil
	c.Call(now, store.List)
}

// queue finds this member's place in the queue. Only the end of the lease deletes its key, so
// without the key there is no lease.
func (c *Client) queue(now algorithm.Time, keys []store.Key, leads string) {
	own := slices.IndexFunc(keys, func(k store.Key) bool { return k.Created == c.key })
	c.watches = nil
	if own < 0 {
		c.NewSession(now, "its key is gone")
		return
	}
	if own == 0 {
		c.See(elector.Leader, keys[0], leads)
		return
	}
	c.watches = append(c.watches, keys[0].Created)
	if own > 1 {
		c.watches = append(c.watches, keys[own-1].Created)
	}
	c.See(elector.Follower, keys[0], "another key is older")
	c.Call(now, store.Watch)
}

// See takes a new view. A leadership of this member by a lease that it has given up does not
// count.
func (c *Client) See(role elector.Role, leader store.Key, why string) {
	view := algorithm.View{Role: role, Leader: leader.Client, Term: lsn.Term(leader.Created)}
	if leader.Client == c.Self && role != elector.Leader {
		view.Leader, view.Term = "", 0
	}
	if view != c.view {
		c.view, c.Effects.Why = view, why
	}
}

package loop

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// The machine knows a value by its size and hash. The driver keeps the bytes, and lets the machine
// know of a record only when it has the whole value. A node pulls a value from the peer that offers
// the record, in parts, each of which is a note: heartbeats pass between them. The leader sends the
// first part of a new value without being asked, so that a small one arrives with the record. A
// leader pulls the value of a call in the same way from the asker.
//
// A peer is offered one record at a time, and pulls one at a time: however fast values change, the
// one that is on its way arrives, and then the newest is next. What is lost is asked for again.

const (
	partSize = 16 << 10 // bytes of a part, except for the last one
	window   = 4        // parts of a value that are under way at a time
	// maxFromPeer bounds the values that are on their way here from one peer, maxFromGuests those
	// from all nodes without a vote: in bytes. Others wait. Values of one part have as much again.
	maxFromPeer, maxFromGuests = 2 << 20, 4 << 20

	askAfter  = time.Second           // without the next part: it is asked for again
	roomAfter = 10 * time.Millisecond // the link may have room for more again
	maxAsked  = 5                     // times without an answer: then the value is given up
	keepsFor  = 5 * time.Second       // a value that was offered and that nobody pulls
	maxPinned = 4                     // values of an election that are kept for nodes without a vote
)

type valueHash = [sha256.Size]byte

// part is the body of a note: a part of a value, or without text the wish for one.
type part struct {
	hash valueHash
	at   int // of the first byte
	text []byte
}

const partHeader = sha256.Size + 4

func (p *part) body() []byte {
	body := append(make([]byte, 0, partHeader+len(p.text)), p.hash[:]...)
	return append(binary.BigEndian.AppendUint32(body, uint32(p.at)), p.text...)
}

func parsePart(body []byte) (p part, ok bool) {
	if len(body) < partHeader {
		return p, false
	}
	copy(p.hash[:], body)
	at := binary.BigEndian.Uint32(body[sha256.Size:])
	p.at, p.text = int(at), body[partHeader:]
	return p, at <= elector.MaxValue
}

// accepted goes on after the machine has accepted a record.
func (d *Driver) accepted(g *group, r lsn.LSN) {
	d.expect(func(c *coming) bool { return c.g != g || c.call != nil || r.Less(c.offer.Record) })
	for _, o := range g.offers {
		if d.Now().Sub(o.moved) > keepsFor {
			o.value = nil
		}
	}
	d.noteVoters(g)
}

// offering is what a peer is offered.
type offering struct {
	elector.Message

	value []byte          // kept for the peer until its last part has left
	next  elector.Message // a newer offer that waits until then
	moved elector.Time    // when the peer pulled last
}

// offer offers a record to a peer, and sends the first part of a new value unasked. While the peer
// pulls the value of the record before, it is offered that one again.
func (d *Driver) offer(g *group, to elector.NodeID, m *elector.Message) {
	if d.up[to] == nil { // it will ask
		return
	}
	o, r, now := g.offers[to], m.Offer, d.Now()
	if o == nil {
		o = &offering{Message: elector.Message{Offer: &elector.Record{}}}
		if g.offers == nil {
			g.own().offers = map[elector.NodeID]*offering{}
		}
		g.offers[to] = o
	}
	other := o.Offer.Value.Hash != r.Value.Hash
	if other && o.value != nil && now.Sub(o.moved) <= keepsFor {
		o.next = *m
		d.Mesh.Send(to, g.Name, o.Message)
		return
	}
	isNew := r.LSN == r.Value.LSN && o.Record != r.LSN
	if o.Message, o.next = *m, (elector.Message{}); other {
		o.value = nil
	}
	d.Mesh.Send(to, g.Name, *m)
	if isNew {
		d.sendPart(g, to, r.Value.Hash, 0)
	}
}

// pin keeps a value for a peer that pulls it, unless nodes without a vote have too many.
func (d *Driver) pin(g *group, to elector.NodeID, value []byte) {
	guests := 0
	for id, o := range g.offers {
		if o.value != nil && id != to && !d.IsVoter(id) {
			guests++
		}
	}
	if d.IsVoter(to) || guests < maxPinned {
		g.offers[to].value, g.offers[to].moved = value, d.Now()
	}
}

// freed offers a peer what waited until it had pulled another value.
func (d *Driver) freed(g *group, to elector.NodeID, o *offering) {
	next := o.next
	if o.value = nil; next.Offer != nil {
		d.offer(g, to, &next)
	}
}

// sendPart sends a part of a value, if it is there and there is room.
func (d *Driver) sendPart(g *group, to elector.NodeID, hash valueHash, at int) {
	value, o := g.values[hash], g.offers[to]
	offered := o != nil && o.Offer.Value.Hash == hash
	if offered && o.value != nil {
		value = o.value
	} else if value == nil {
		value = d.calls.value(to, hash)
	}
	if at >= len(value) {
		return
	}
	end := min(at+partSize, len(value))
	p := part{hash, at, value[at:end]}
	sent := d.Mesh.Notify(to, netmesh.Note{Group: g.Name, Kind: notePart, Body: p.body()})
	switch {
	case !offered:
	case sent && end == len(value):
		d.freed(g, to, o)
	default:
		d.pin(g, to, value)
	}
}

// dropTransfersOf forgets the transfers from and to a peer.
func (d *Driver) dropTransfersOf(peer elector.NodeID) {
	for _, g := range d.groups {
		delete(g.offers, peer)
	}
	d.expect(func(c *coming) bool { return c.from != peer })
}

// coming is a value on its way here: that of a record that a peer offers, or of its call.
type coming struct {
	g     *group
	from  elector.NodeID
	of    elector.Value
	offer elector.Message // the newest of that value
	next  elector.Message // an offer of another value, which waits
	call  chan []byte     // gets the value of a call; closed when it is given up
	value []byte          // what has arrived, from the beginning; nil while there is no room
	sum   hash.Hash       // of that
	asked int             // up to where it was asked for
	tries int             // how often since a part came
	tried elector.Time    // when it was asked for last, or came
}

func (c *coming) size() int { return int(c.of.Size) }

// expect forgets the values on their way here for which keep returns false.
func (d *Driver) expect(keep func(*coming) bool) {
	if len(d.coming) > 0 {
		d.coming = slices.DeleteFunc(d.coming, func(c *coming) bool {
			drop := !keep(c)
			if drop && c.call != nil {
				close(c.call)
			}
			if drop && c.value != nil {
				d.arriving.add(c.from, -c.size())
				d.pullAt = min(d.pullAt, d.Now())
			}
			return drop
		})
	}
}

// forget forgets one value on its way here.
func (d *Driver) forget(c *coming) { d.expect(func(o *coming) bool { return o != c }) }

// offered steps the machine with the offer of a record, at once if the machine needs no value.
func (d *Driver) offered(g *group, from elector.NodeID, m *elector.Message) {
	r := m.Offer
	_, has := g.values[r.Value.Hash]
	if has || r.Value == (elector.Value{}) ||
		r.LSN.Compare(g.machine.Record().Accepted.LSN) <= 0 {
		d.step(g, elector.Received{From: from, Identity: d.identity(from), Message: *m})
		return
	}
	i := slices.IndexFunc(d.coming, func(c *coming) bool {
		return c.g == g && c.from == from && c.call == nil
	})
	if i >= 0 {
		c := d.coming[i]
		same := c.of.Hash == r.Value.Hash && c.of.Size == r.Value.Size
		switch {
		case same:
			c.offer, c.next = *m, elector.Message{}
			d.pull(c, d.Now())
			return
		case c.value != nil && c.tries <= 1: // it arrives: another one may never
			c.next = *m
			return
		}
		d.forget(c)
	}
	c := &coming{g: g, from: from, of: r.Value, offer: *m, sum: sha256.New()}
	if r.LSN == r.Value.LSN {
		c.asked = partSize // it comes unasked
	}
	d.coming = append(d.coming, c)
	d.pull(c, d.Now())
}

// arriving are the bytes of the values on their way here that have room, by peer.
type arriving map[elector.NodeID]int

func (a arriving) add(from elector.NodeID, bytes int) {
	if a[from] += bytes; a[from] == 0 {
		delete(a, from)
	}
}

// hasRoom reports whether one more value may be on its way from a peer.
func (d *Driver) hasRoom(c *coming) bool {
	guests := c.size()
	for from, bytes := range d.arriving {
		if !d.IsVoter(from) {
			guests += bytes
		}
	}
	shares := 1
	if c.size() <= partSize { // large ones whose parts do not come must not keep it back
		shares = 2
	}
	return d.arriving[c.from]+c.size() <= shares*maxFromPeer &&
		(d.IsVoter(c.from) || guests <= shares*maxFromGuests)
}

// pullAll asks again for what has not come, and begins what had to wait. It runs for each message,
// and thousands of values may come: it looks at them if one has gone, or after a while.
func (d *Driver) pullAll() {
	now := d.Now()
	if len(d.coming) == 0 || now < d.pullAt {
		return
	}
	d.pullAt = now.Add(askAfter)
	clear(d.full)
	for i := 0; i < len(d.coming); i++ { // one that goes takes its place along
		d.pull(d.coming[i], now)
	}
}

// pull asks for the next parts of a value, or goes on if all is there.
func (d *Driver) pull(c *coming, now elector.Time) {
	switch {
	case c.value == nil && !d.hasRoom(c):
		c.asked = 0
		return
	case c.value == nil:
		c.value, c.tried = make([]byte, 0, c.size()), now
		d.arriving.add(c.from, c.size())
	case now.Sub(c.tried) < askAfter:
	case c.tries == maxAsked:
		d.forget(c)
		return
	default:
		c.asked, c.tries, c.tried = len(c.value), c.tries+1, now
	}
	for c.asked < min(len(c.value)+window*partSize, c.size()) {
		p := part{hash: c.of.Hash, at: c.asked}
		if d.full[c.from] ||
			!d.Mesh.Notify(c.from, netmesh.Note{Group: c.g.Name, Kind: noteWanted, Body: p.body()}) {
			d.full[c.from] = true
			d.pullAt = min(d.pullAt, now.Add(roomAfter))
			return
		}
		c.asked += partSize
	}
	if len(c.value) == c.size() {
		d.pulled(c)
	}
}

// pulled takes a value that is here as a whole.
func (d *Driver) pulled(c *coming) {
	right := valueHash(c.sum.Sum(nil)) == c.of.Hash
	if right && c.call != nil {
		c.call <- c.value
	}
	d.forget(c)
	if !right {
		if _, due := d.logged.Due(anomalyOf{"wrong-value", c.from}); due {
			d.Log.Warn("a value is refused: it is not the one that was named", "peer", c.from,
				"group", c.g.Name, "record", c.offer.Record.String())
		}
	} else if c.call == nil {
		c.g.keep(c.of.Hash, c.value)
		d.step(c.g, elector.Received{
			From: c.from, Identity: d.identity(c.from), Message: c.offer,
		})
		if c.next.Offer != nil {
			d.offered(c.g, c.from, &c.next)
		}
	}
	d.pullAll()
}

// arrived takes a part of a value that was asked for. Parts come in order: what does not fit
// behind those before came twice, or of something else.
func (d *Driver) arrived(g *group, from elector.NodeID, p *part) {
	i := slices.IndexFunc(d.coming, func(c *coming) bool {
		return c.g == g && c.from == from && c.value != nil && p.hash == c.of.Hash &&
			p.at == len(c.value) && len(p.text) == min(partSize, c.size()-p.at)
	})
	if i < 0 || len(p.text) == 0 {
		return
	}
	c := d.coming[i]
	c.value = append(c.value, p.text...)
	c.sum.Write(p.text) // never fails
	c.asked, c.tries, c.tried = max(c.asked, len(c.value)), 0, d.Now()
	d.pull(c, c.tried)
}

package loop

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// The machine knows a value by its size and hash. The driver keeps the bytes, and lets the machine
// know of a record only when it has the whole value. A node pulls a value from the peer that offers
// the record, in parts, each of which is a note: heartbeats pass between them. The leader sends the
// first part of a new value without being asked, so that a small one arrives with the record.
// Whatever is lost is asked for again when the record is offered again, which the machine sees to.

const (
	partSize = 16 << 10 // bytes of a part, except for the last one
	window   = 4        // parts of a value that are under way at a time
	// maxComing bounds the values that are on their way here from voters, maxFromGuests those from
	// nodes without a vote: in bytes, by what their records say.
	maxComing, maxFromGuests = 64 << 20, 4 << 20
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
	d.expect(func(c *coming) bool { return c.g != g || r.Less(c.offer.Record) })
	d.noteVoters(g)
}

// pushed names the peer to which the first part of an election's value was pushed.
type pushed struct {
	g  *group
	to elector.NodeID
}

// push sends the first part of a value behind the first offer of the record that brought it.
func (d *Driver) push(g *group, offer *elector.Envelope) {
	r, to := offer.Message.Offer, pushed{g, offer.To}
	if r.LSN == r.Value.LSN && d.pushed[to] != r.LSN && d.sendPart(g, offer.To, r.Value.Hash, 0) {
		d.pushed[to] = r.LSN
	}
}

// sendPart reports whether the part will be sent.
func (d *Driver) sendPart(g *group, to elector.NodeID, hash valueHash, at int) bool {
	value := g.values[hash]
	if at >= len(value) {
		return false
	}
	p := part{hash, at, value[at:min(at+partSize, len(value))]}
	return d.Mesh.Notify(to, netmesh.Note{Group: g.Name, Kind: notePart, Body: p.body()})
}

// dropTransfers forgets the transfers for which over returns true.
func (d *Driver) dropTransfers(over func(g *group, peer elector.NodeID) bool) {
	maps.DeleteFunc(d.pushed, func(p pushed, _ lsn.LSN) bool { return over(p.g, p.to) })
	d.expect(func(c *coming) bool { return !over(c.g, c.from) })
}

// coming is a record that a peer offers, whose value is on its way here.
type coming struct {
	g     *group
	from  elector.NodeID
	offer elector.Message
	value []byte    // what has arrived, from the beginning
	sum   hash.Hash // of that
	asked int       // up to where it was asked for
	had   int       // how much had arrived when the record was offered last
}

func (c *coming) size() int { return int(c.offer.Offer.Value.Size) }

// expect forgets the records on their way here for which keep returns false.
func (d *Driver) expect(keep func(*coming) bool) {
	if len(d.coming) > 0 {
		d.coming = slices.DeleteFunc(d.coming, func(c *coming) bool { return !keep(c) })
	}
}

// from returns the record that is on its way from a peer; nil if there is none.
func (d *Driver) from(g *group, peer elector.NodeID) *coming {
	for _, c := range d.coming {
		if c.g == g && c.from == peer {
			return c
		}
	}
	return nil
}

// offered steps the machine with the offer of a record, at once if the machine needs no value.
func (d *Driver) offered(g *group, e *event) {
	r := e.msg.Offer
	_, has := g.values[r.Value.Hash]
	if has || r.Value == (elector.Value{}) ||
		r.LSN.Compare(g.machine.Record().Accepted.LSN) <= 0 {
		d.step(g, elector.Received{From: e.from, Identity: d.identity(e.from), Message: e.msg})
		return
	}
	c := d.from(g, e.from)
	if c == nil || c.offer.Offer.Value.Hash != r.Value.Hash || c.size() != int(r.Value.Size) {
		d.expect(func(o *coming) bool { return o != c })
		if !d.hasRoom(e.from, int(r.Value.Size)) {
			return
		}
		c = &coming{g: g, from: e.from, sum: sha256.New()}
		if r.LSN == r.Value.LSN {
			c.asked = partSize // it comes unasked
		}
		d.coming = append(d.coming, c)
	} else if len(c.value) == c.had {
		c.asked = c.had // nothing has come since
	}
	c.offer, c.had = e.msg, len(c.value)
	d.pull(c)
}

// hasRoom reports whether one more value may be on its way from a peer.
func (d *Driver) hasRoom(from elector.NodeID, size int) bool {
	voter, sum := d.IsVoter(from), size
	for _, c := range d.coming {
		if d.IsVoter(c.from) == voter {
			sum += c.size()
		}
	}
	return sum <= maxFromGuests || voter && sum <= maxComing
}

// pull asks for the next parts of a value, or steps the machine if all is there.
func (d *Driver) pull(c *coming) {
	for c.asked < min(len(c.value)+window*partSize, c.size()) {
		p := part{hash: c.offer.Offer.Value.Hash, at: c.asked}
		if !d.Mesh.Notify(c.from, netmesh.Note{Group: c.g.Name, Kind: noteWanted, Body: p.body()}) {
			return
		}
		c.asked += partSize
	}
	if len(c.value) < c.size() {
		return
	}
	if valueHash(c.sum.Sum(nil)) != c.offer.Offer.Value.Hash {
		d.expect(func(o *coming) bool { return o != c })
		if _, due := d.logged.Due(anomalyOf{"wrong-value", c.from}); due {
			d.Log.Warn("a record is refused: the value that came is not the one that it names",
				"peer", c.from, "group", c.g.Name, "record", c.offer.Record.String())
		}
		return
	}
	c.g.keep(c.offer.Offer.Value.Hash, c.value)
	d.step(c.g, elector.Received{
		From: c.from, Identity: d.identity(c.from), Message: c.offer,
	})
}

// arrived takes a part of a value that was asked for. Parts come in order: what does not fit
// behind those before came twice, or of something else.
func (d *Driver) arrived(g *group, from elector.NodeID, p *part) {
	c := d.from(g, from)
	if c == nil || p.hash != c.offer.Offer.Value.Hash || p.at != len(c.value) ||
		len(p.text) != min(partSize, c.size()-p.at) || len(p.text) == 0 {
		return
	}
	if c.value == nil {
		c.value = make([]byte, 0, c.size())
	}
	c.value = append(c.value, p.text...)
	c.sum.Write(p.text) // never fails
	c.asked = max(c.asked, len(c.value))
	d.pull(c)
}

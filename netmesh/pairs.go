package netmesh

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// PairsVersion is the first PeerInfo.Version of builds that know beats of pairs.
const PairsVersion = version6

// maxChanges is how many changes may wait for a peer. They may neither be left out nor replace each
// other, so a peer that does not read loses its link instead. It is four for each of more elections
// than a node is made for.
const maxChanges = 1 << 20

// pairs is what a link sends to the other end of its session.
type pairs struct {
	mu sync.Mutex
	// What waits for the stream.
	changes []pair.Change
	beat    pair.Beat // sequence 0 for none
	ack     pair.Ack  // likewise
	// Datagrams. Whoever sends a beat or an ack sends them; poster never waits.
	path   path
	seals  [datagramKinds]seals
	sealed [datagramKinds]uint64 // the newest sequence
	poster poster                // nil if there are no datagrams
	packet [maxDatagram]byte     // a field, because a local variable would escape to the heap
	err    error                 // of the last one that was sent, or why there are none
	used   bool                  // there was a beat or an ack to send
}

// take returns all that waits for the stream, and forgets it.
func (p *pairs) take() (changes []pair.Change, b pair.Beat, a pair.Ack) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changes, b, a = p.changes, p.beat, p.ack
	p.changes, p.beat, p.ack = nil, pair.Beat{}, pair.Ack{}
	return changes, b, a
}

// half is a random half of the number of a session.
func half() uint32 { return max(rand.Uint32(), 1) }

// session is the number of the session of a link, of which the dialer said one half and the acceptor
// the other; 0 if one of them knows no pairs.
func session(dialer, acceptor uint32) uint64 {
	if dialer == 0 || acceptor == 0 {
		return 0
	}
	return uint64(dialer)<<32 | uint64(acceptor)
}

// linkOf is the link of a session; nil if that is not the present one.
func (m *Mesh) linkOf(to elector.NodeID, number uint64) *link {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.peers[to]
	if p == nil || p.link == nil || number == 0 || p.link.info.Session != number {
		return nil
	}
	return p.link
}

// Change queues changes for the other end of a session, and never blocks. They arrive in order, and
// none is left out, or the link ends. They overtake no message that was sent before them. The result
// is false if the session is not the present one.
func (m *Mesh) Change(to elector.NodeID, session uint64, changes []pair.Change) bool {
	l := m.linkOf(to, session)
	if l == nil {
		return false
	}
	l.pairs.mu.Lock()
	defer l.pairs.mu.Unlock()
	if waiting := len(l.pairs.changes); waiting+len(changes) > maxChanges {
		l.end(elector.EvidenceLocal,
			refuse(reasonCrowded, "%d changes of followed elections wait", waiting))
		return true
	}
	l.pairs.changes = append(l.pairs.changes, changes...)
	l.ready.wake()
	return true
}

// Beat sends a beat to the other end of a session, and never blocks. It goes by datagram if those
// are answered, and on the stream otherwise. It may be lost, and a newer one replaces one that
// waits. Each has a greater sequence than the one before. The result is false if the session is not
// the present one.
func (m *Mesh) Beat(to elector.NodeID, session uint64, b pair.Beat) bool {
	l := m.linkOf(to, session)
	if l == nil {
		return false
	}
	l.pairs.mu.Lock()
	defer l.pairs.mu.Unlock()
	datagram, stream := l.way(beatDatagram)
	if datagram {
		w := wireBeatOf(&b)
		w.Datagrams = l.inbox.came.Load()
		l.post(beatDatagram, b.Sequence, w.body(l.pairs.packet[:datagramHead]))
	}
	if stream {
		l.pairs.beat = b
		l.ready.wake()
	}
	return true
}

// Ack sends the answer to a beat, as Beat does.
func (m *Mesh) Ack(to elector.NodeID, session uint64, a pair.Ack) bool {
	l := m.linkOf(to, session)
	if l == nil {
		return false
	}
	l.pairs.mu.Lock()
	defer l.pairs.mu.Unlock()
	datagram, stream := l.way(ackDatagram)
	if datagram {
		w := wireAckOf(&a)
		w.Datagrams = l.inbox.came.Load()
		l.post(ackDatagram, a.Sequence, w.body(l.pairs.packet[:datagramHead]))
	}
	if stream {
		l.pairs.ack = a
		l.ready.wake()
	}
	return true
}

// wireChange, wireBeat and wireAck are pair.Change, Beat and Ack as they travel in frames: see
// wireItem. Durations are in microseconds.
type wireChange struct {
	What     uint8
	Revision uint64
	Group    []byte
	Term     uint64
}

type wireBeat struct {
	Sequence       uint64
	SentAt         int64
	Period, Late   int64
	Revision, Hash uint64
	Datagrams      uint64 // that have come in this session: see path
}

type wireAck struct {
	Sequence uint64
	SentAt   int64
	Revision uint64
	Wanted   int64
	// Datagrams is as in wireBeat.
	Datagrams uint64
}

// maxChange is the most bytes that one encoded change takes.
const maxChange = MaxNameLength + 3 + 2*9 + 3

// changes encodes as many of the changes as fit a frame of at most limit bytes, at least one, and
// returns their number and the frame.
func (e *encoder) changes(all []pair.Change, limit int) (n int, frame []byte, err error) {
	e.begin()
	for n < len(all) && len(e.body)+maxChange < limit {
		c := &all[n]
		e.change = wireChange{uint8(c.What), c.Revision, append(e.change.Group[:0], c.Group...),
			uint64(c.Term)}
		if err := e.codec.Encode(&e.change); err != nil {
			return 0, nil, err
		}
		n++
	}
	return n, e.finish(frameChanges), nil
}

// changes returns the changes of a body.
func (d *decoder) changes(body []byte) (all []pair.Change, err error) {
	d.codec.ResetBytes(body)
	for d.codec.NumBytesRead() < len(body) {
		w := &d.change
		*w = wireChange{Group: w.Group[:0]}
		if err := d.codec.Decode(w); err != nil {
			return nil, refuse(ReasonGarbage, "change: %v", err)
		}
		c := pair.Change{What: pair.What(w.What), Revision: w.Revision, Term: lsn.Term(w.Term)}
		named := c.What != pair.Empty && c.What != pair.Begin
		if !c.What.Valid() || c.Term > lsn.MaxTerm || named != (len(w.Group) > 0) ||
			len(w.Group) > MaxNameLength {
			return nil, refuse(ReasonGarbage, "change %s of a name of %d bytes", c, len(w.Group))
		}
		c.Group = d.names.of(w.Group)
		all = append(all, c)
	}
	return all, nil
}

// sendPairs sends a beat and an ack that wait. It returns the changes that wait, which are to be
// sent behind the messages that wait.
func (l *link) sendPairs() ([]pair.Change, error) {
	changes, b, a := l.pairs.take()
	if b.Sequence != 0 {
		l.wire.beat = wireBeatOf(&b)
		l.wire.beat.Datagrams = l.inbox.came.Load()
		if err := l.send(frameBeat, &l.wire.beat); err != nil {
			return nil, err
		}
	}
	if a.Sequence != 0 {
		l.wire.ack = wireAckOf(&a)
		l.wire.ack.Datagrams = l.inbox.came.Load()
		if err := l.send(frameAck, &l.wire.ack); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func (l *link) sendChanges(rest []pair.Change) error {
	for len(rest) > 0 {
		n, frame, err := l.enc.changes(rest, maxFrame)
		if err != nil {
			return err
		}
		if err := l.put(frame); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// takePairs hands what the other end of the session sent to the handler.
func (l *link) takePairs(kind frameKind, body []byte) error {
	var changes []pair.Change
	var b pair.Beat
	var a pair.Ack
	var err error
	w := &l.got
	switch kind {
	case frameChanges:
		changes, err = l.dec.changes(body)
	case frameBeat:
		if err = l.dec.one(body, &w.beat); err == nil {
			b, err = w.beat.value()
		}
	case frameAck:
		if err = l.dec.one(body, &w.ack); err == nil {
			a, err = w.ack.value()
		}
	}
	if err != nil {
		return err
	}
	l.p.callbacks.lock()
	defer l.p.callbacks.unlock()
	if !l.current() || isClosed(l.stop) || l.info.Session == 0 {
		return nil
	}
	switch in := &l.inbox; {
	case kind == frameChanges:
		l.m.handler.Changed(l.p.node, l.info.Session, changes)
	case kind == frameBeat && in.streamed(beatDatagram, b.Sequence, w.beat.Datagrams):
		l.m.handler.Beaten(l.p.node, l.info.Session, b, 0)
	case kind == frameAck && in.streamed(ackDatagram, a.Sequence, w.ack.Datagrams):
		l.m.handler.Acked(l.p.node, l.info.Session, a)
	}
	return nil
}

func wireBeatOf(b *pair.Beat) wireBeat {
	return wireBeat{Sequence: b.Sequence, SentAt: int64(b.SentAt), Period: b.Period.Microseconds(),
		Late: b.Late.Microseconds(), Revision: b.Revision, Hash: b.Hash}
}

func wireAckOf(a *pair.Ack) wireAck {
	return wireAck{Sequence: a.Sequence, SentAt: int64(a.SentAt), Revision: a.Revision,
		Wanted: a.Wanted.Microseconds()}
}

// value returns the beat, or what no correct peer sends.
func (w wireBeat) value() (pair.Beat, error) {
	if w.Sequence == 0 || w.SentAt <= 0 || uint64(w.Period) > maxMicros || uint64(w.Late) > maxMicros {
		return pair.Beat{}, refuse(ReasonGarbage, "beat %+v", w)
	}
	return pair.Beat{
		Sequence: w.Sequence, SentAt: elector.Time(w.SentAt), Revision: w.Revision, Hash: w.Hash,
		Period: time.Duration(w.Period) * time.Microsecond, Late: time.Duration(w.Late) * time.Microsecond,
	}, nil
}

// value returns the ack, or what no correct peer sends.
func (w wireAck) value() (pair.Ack, error) {
	if w.Sequence == 0 || w.SentAt <= 0 || uint64(w.Wanted) > maxMicros {
		return pair.Ack{}, refuse(ReasonGarbage, "ack %+v", w)
	}
	return pair.Ack{Sequence: w.Sequence, SentAt: elector.Time(w.SentAt), Revision: w.Revision,
		Wanted: time.Duration(w.Wanted) * time.Microsecond}, nil
}

package netmesh

import (
	"math/rand/v2"
	"sync"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// maxChanges is how many changes may wait for a peer. They may neither be left out nor replace each
// other, so a peer that does not read loses its link instead. It is four for each of more elections
// than a node is made for.
const maxChanges = 1 << 20

// pairs is what a link sends to the other end of its session.
type pairs struct {
	mu      sync.Mutex
	changes []pair.Change   // wait for the stream, as words
	words   [wordKinds]word //
	used    bool            // there were words to send

	streamed uint64 // the newest beat that came on the stream
	answer   word   // the newest ack, if it went by datagram alone

	// Datagrams. Whoever has a word sends it at once; the poster never waits.
	path   path
	seals  seals
	sealed [wordKinds]uint64 // the newest sequence
	packet [maxDatagram]byte // a field, because a local variable would escape to the heap
	poster poster            // nil if there are no datagrams
	err    error             // why the last one was not sent, or none can be
}

// take returns all that waits for the stream, and forgets it.
func (p *pairs) take() (changes []pair.Change, words [wordKinds]word) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changes, words = p.changes, p.words
	p.changes, p.words = nil, [wordKinds]word{}
	return changes, words
}

// half is a random half of the number of a session.
func half() uint32 { return max(rand.Uint32(), 1) }

// session is the number of the session of a link, of which the dialer said one half and the
// acceptor the other; 0 if one of them knows no pairs.
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
// none is left out, or the link ends. They overtake no message that was sent before them. The
// result is false if the session is not the present one.
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
// waits. One that is repeated, as it was not answered, goes on the stream. The result is false if
// the session is not the present one.
func (m *Mesh) Beat(to elector.NodeID, session uint64, b pair.Beat) bool {
	return m.say(to, session, word{kind: beatWord, beat: b})
}

// Ack sends the answer to a beat, as Beat does.
func (m *Mesh) Ack(to elector.NodeID, session uint64, a pair.Ack) bool {
	return m.say(to, session, word{kind: ackWord, ack: a})
}

// wireChange is a pair.Change as it travels: see wireItem.
type wireChange struct {
	What     uint8
	Revision uint64
	Group    []byte
	Term     uint64
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

// sendPairs sends the words that wait. It returns the changes that wait, which are to be sent
// behind the messages that wait.
func (l *link) sendPairs() ([]pair.Change, error) {
	changes, words := l.pairs.take()
	for k := range words {
		if words[k].sequence() == 0 {
			continue
		}
		l.enc.begin()
		l.enc.body = words[k].append(l.enc.body)
		if err := l.put(l.enc.finish(frameBeat + frameKind(k))); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// takePairs hands what the other end of the session sent to the handler.
func (l *link) takePairs(kind frameKind, body []byte) (err error) {
	var changes []pair.Change
	var w word
	if kind == frameChanges {
		changes, err = l.dec.changes(body)
	} else {
		w, err = readWord(wordKind(kind-frameBeat), body)
	}
	if err != nil {
		return err
	}
	l.p.callbacks.lock()
	defer l.p.callbacks.unlock()
	switch {
	case !l.current() || isClosed(l.stop) || l.info.Session == 0:
	case kind == frameChanges:
		l.m.handler.Changed(l.p.node, l.info.Session, changes)
	default:
		if w.kind == beatWord {
			l.answerOnStream(w.sequence())
		}
		if l.inbox.streamed(&w) {
			l.hand(&w, 0)
		}
	}
	return nil
}

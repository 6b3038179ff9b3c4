package netmesh

import (
	"bytes"
	"sync"

	"github.com/bmqelect/bmqelect/elector"
)

// MaxNote is the most bytes of Note.Body.
const MaxNote = 17 << 10

const (
	// maxNotes is how much may wait for one peer, maxGuestNotes for one without a vote: there may be
	// many. In bytes of bodies, and noteCost for each note.
	maxNotes, maxGuestNotes = 1 << 20, 8 * (MaxNote + noteCost)
	noteCost                = 1 << 10
	// noteStep is after how many bytes of notes a ping follows. No more than two such pings are
	// under way with notes behind them: what waits in the kernel for a slow network would delay
	// the heartbeats behind it.
	noteStep = 32 << 10
)

// Note is what one node tells another about an election besides the election's messages. The mesh
// does not look into it. Notes to a peer keep their order among themselves, and messages overtake
// them, but no note overtakes a message that was sent before it.
type Note struct {
	Group string // 1 to MaxNameLength bytes
	Kind  uint8
	Body  []byte // at most MaxNote bytes
}

// notes are those that wait for one peer.
type notes struct {
	mu    sync.Mutex
	items []Note
	size  int // as maxNotes counts
}

// push reports whether there was room. One that waits already is not added again.
func (q *notes) push(n Note, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range q.items {
		if o.Group == n.Group && o.Kind == n.Kind && bytes.Equal(o.Body, n.Body) {
			return true
		}
	}
	size := q.size + noteCost + len(n.Body)
	if size > most {
		return false
	}
	q.items, q.size = append(q.items, n), size
	return true
}

// pop takes the oldest, if there is one.
func (q *notes) pop() (n Note, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return n, false
	}
	n = q.items[0]
	q.items[0] = Note{}
	q.items, q.size = q.items[1:], q.size-noteCost-len(n.Body)
	return n, true
}

func (q *notes) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.size = nil, 0
}

// Notify queues a note for a peer, and never blocks. The result is whether it was queued, or the
// same note waits already: false if there is no link, if the peer's build knows no notes, if there
// is no room, or if the note breaks its own limits. True is no promise that it arrives. The body
// must not be changed afterwards.
func (m *Mesh) Notify(to elector.NodeID, n Note) bool {
	if NameProblem(n.Group) != "" || len(n.Body) > MaxNote {
		return false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	p, most := m.peers[to], maxGuestNotes
	if p == nil || p.link == nil || p.link.info.Version < version5 {
		return false
	}
	if m.cfg.isVoter(to) {
		most = maxNotes
	}
	queued := p.notes.push(n, most)
	p.link.noted.wake()
	return queued
}

// sendNotes sends notes, the oldest first, until a ping follows them or too much is under way. The
// messages that wait pass between two calls. Only the link itself may take from the queue.
func (l *link) sendNotes() error {
	if !l.current() || l.answered.Load() < l.marks[0] {
		return nil // the next pong or link wakes the writer
	}
	for l.unmarked < noteStep {
		var ok bool
		if l.note, ok = l.p.notes.pop(); !ok {
			return nil
		}
		// What was sent before the note goes first.
		if err := l.sendBatch(); err != nil {
			return err
		}
		if err := l.send(frameNote, &l.note); err != nil {
			return err
		}
		l.unmarked += len(l.note.Body)
	}
	l.unmarked = 0
	err := l.sendPing()
	l.marks = [2]uint64{l.marks[1], l.meter.newest()}
	l.noted.wake() // more may wait
	return err
}

// takeNote hands a note to the handler.
func (l *link) takeNote(body []byte) error {
	var n Note
	if err := l.dec.one(body, &n); err != nil {
		return err
	}
	if NameProblem(n.Group) != "" || len(n.Body) > MaxNote {
		return refuse(ReasonGarbage, "note of %d bytes about %.260q; want at most %d bytes",
			len(n.Body), n.Group, MaxNote)
	}
	l.p.callbacks.lock()
	defer l.p.callbacks.unlock()
	if l.p.sameProcess(l) && !(l.current() && isClosed(l.stop)) {
		l.m.handler.Noted(l.p.node, n)
	}
	return nil
}

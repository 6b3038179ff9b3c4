package netmesh

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/elector/pair"
)

// inbox is what has come from the other end of a session by datagrams. The reader of the mesh's
// socket puts it in, and never waits: a newer beat or ack replaces one that waits. The link's own
// goroutine, handOver, waits for the handler. The link's reader asks what is new.
type inbox struct {
	told atomic.Uint64 // how many datagrams the other end has received, as far as it has told
	came atomic.Uint64 // datagrams that counted
	some waker         // something waits

	mu      sync.Mutex
	seals   [datagramKinds]seals
	seen    [datagramKinds]window // datagrams
	refused uint64
	// What came for the handler, by datagrams and on the stream.
	beats  uint64    // the newest sequence; what that has overtaken promises nothing
	acks   window    // they count in any order
	beat   pair.Beat // waits; sequence 0 for none
	beatAt time.Time // when it came
	ack    pair.Ack  // waits; sequence 0 for none
}

// window are the newest 64 sequences, of which it knows which have come.
type window struct {
	newest uint64
	seen   uint64 // the lowest bit is the newest one
}

// has reports whether a sequence has come, or is too old to tell.
func (w *window) has(sequence uint64) bool {
	return sequence <= w.newest &&
		(w.newest-sequence >= 64 || w.seen&(1<<(w.newest-sequence)) != 0)
}

// add takes note of a sequence, and reports whether it is new.
func (w *window) add(sequence uint64) bool {
	if w.has(sequence) {
		return false
	}
	if sequence > w.newest {
		w.seen <<= min(sequence-w.newest, 64)
		w.newest = sequence
	}
	w.seen |= 1 << (w.newest - sequence)
	return true
}

// isNew takes note of a beat or an ack, whichever way it came, and reports whether it is news to the
// handler. Called with mu held.
func (i *inbox) isNew(kind datagramKind, sequence uint64) bool {
	switch {
	case kind == ackDatagram:
		return i.acks.add(sequence)
	case sequence <= i.beats:
		return false
	}
	i.beats = sequence
	return true
}

// streamed takes note of a beat or an ack that came on the stream, and reports whether it is new.
func (i *inbox) streamed(kind datagramKind, sequence, told uint64) bool {
	i.tell(told)
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.isNew(kind, sequence)
}

// tell takes note of what the other end tells of the datagrams that it has received.
func (i *inbox) tell(told uint64) {
	for old := i.told.Load(); told > old && !i.told.CompareAndSwap(old, told); old = i.told.Load() {
	}
}

// take takes a datagram, or says why it does not count. Nothing of it is believed before its proof.
// A copy of what came on the stream counts, because it shows that datagrams arrive.
func (i *inbox) take(
	kind datagramKind, sequence uint64, packet []byte, came time.Time,
) (c cause, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen[kind].has(sequence) {
		i.refused++
		return causeOld, false
	}
	body := i.seals[kind].open(packet)
	if body == nil {
		i.refused++
		return causeForged, false
	}
	if !i.put(kind, sequence, body, came) {
		i.refused++
		return causeMalformed, false
	}
	i.seen[kind].add(sequence)
	i.came.Add(1)
	return 0, true
}

// put lets what a datagram says wait for the handler if it is new, and reports whether a correct
// peer says it. Called with mu held.
func (i *inbox) put(kind datagramKind, sequence uint64, body []byte, came time.Time) bool {
	var told uint64
	if kind == beatDatagram {
		w := readBeat(sequence, body)
		b, err := w.value()
		if err != nil {
			return false
		}
		if told = w.Datagrams; i.isNew(kind, sequence) {
			i.beat, i.beatAt = b, came
		}
	} else {
		w := readAck(sequence, body)
		a, err := w.value()
		if err != nil {
			return false
		}
		if told = w.Datagrams; i.isNew(kind, sequence) && sequence > i.ack.Sequence {
			i.ack = a
		}
	}
	i.tell(told)
	i.some.wake()
	return true
}

// waiting returns what waits, and forgets it.
func (i *inbox) waiting() (b pair.Beat, at time.Time, a pair.Ack) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if b, at, a = i.beat, i.beatAt, i.ack; b.Sequence < i.beats {
		b = pair.Beat{} // a newer one has come on the stream meanwhile
	}
	i.beat, i.ack = pair.Beat{}, pair.Ack{}
	return b, at, a
}

// handOver hands the newest beat and ack that came by datagrams to the handler, until the link ends.
// Those that came while the handler was busy are lost, except the newest.
func (l *link) handOver() {
	for {
		select {
		case <-l.inbox.some:
		case <-l.stop:
			return
		}
		l.p.callbacks.lock()
		b, at, a := l.inbox.waiting()
		if l.current() && !isClosed(l.stop) {
			if b.Sequence != 0 {
				l.m.handler.Beaten(l.p.node, l.info.Session, b, time.Since(at))
			}
			if a.Sequence != 0 {
				l.m.handler.Acked(l.p.node, l.info.Session, a)
			}
		}
		l.p.callbacks.unlock()
	}
}

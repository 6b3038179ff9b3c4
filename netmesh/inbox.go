package netmesh

import (
	"sync"
	"sync/atomic"
	"time"
)

// inbox is what has come from the other end of a session by datagrams. The reader of the mesh's
// socket puts it in and never waits: a newer word replaces one that waits. The link's handOver
// waits for the handler. The link's reader asks whether what comes on the stream is news.
type inbox struct {
	told atomic.Uint64 // how many datagrams the other end has received, as far as it has told
	came atomic.Uint64 // datagrams that counted
	some waker         // a word waits

	mu     sync.Mutex
	seals  seals
	seen   [wordKinds]window // datagrams
	heard  [wordKinds]window // words for the handler, by datagrams and on the stream
	waits  [wordKinds]word
	beatAt time.Time // when the beat that waits came
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

// add takes note of a sequence.
func (w *window) add(sequence uint64) {
	if sequence > w.newest {
		w.seen <<= min(sequence-w.newest, 64)
		w.newest = sequence
	}
	w.seen |= 1 << (w.newest - sequence)
}

// isNews takes note of a word, whichever way it came, and reports whether it is for the handler.
// Acks count in any order. A beat that was overtaken promises nothing. Called with mu held.
func (i *inbox) isNews(w *word) bool {
	for told := i.told.Load(); w.came > told; told = i.told.Load() {
		i.told.CompareAndSwap(told, w.came)
	}
	heard, sequence := &i.heard[w.kind], w.sequence()
	if heard.has(sequence) || w.kind == beatWord && sequence < heard.newest {
		return false
	}
	heard.add(sequence)
	return true
}

// streamed is isNews for a word that came on the stream.
func (i *inbox) streamed(w *word) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.isNews(w)
}

// take takes a datagram, or says why it does not count. Nothing of it is believed before it is
// opened. A copy of what came on the stream counts, because it shows that datagrams arrive.
func (i *inbox) take(
	kind wordKind, sequence uint64, packet []byte, came time.Time,
) (dropped, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen[kind].has(sequence) {
		return droppedOld, false
	}
	body := i.seals.open(kind, packet)
	if body == nil {
		return droppedForged, false
	}
	w, err := readWord(kind, body)
	if err != nil {
		return droppedMalformed, false
	}
	i.seen[kind].add(sequence)
	i.came.Add(1)
	if i.isNews(&w) && sequence > i.waits[kind].sequence() {
		i.waits[kind] = w
		if kind == beatWord {
			i.beatAt = came
		}
		i.some.wake()
	}
	return 0, true
}

// waiting returns what waits, and forgets it.
func (i *inbox) waiting() (words [wordKinds]word, beatAt time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	words, i.waits = i.waits, [wordKinds]word{}
	if words[beatWord].sequence() < i.heard[beatWord].newest { // another came on the stream
		words[beatWord] = word{}
	}
	return words, i.beatAt
}

// handOver hands the newest words that came by datagrams to the handler, until the link ends. While
// the handler is busy all except the newest are lost.
func (l *link) handOver() {
	for {
		select {
		case <-l.inbox.some:
		case <-l.stop:
			return
		}
		l.p.callbacks.lock()
		words, beatAt := l.inbox.waiting()
		for k := range words {
			if w := &words[k]; w.sequence() != 0 && l.current() && !isClosed(l.stop) {
				l.hand(w, time.Since(beatAt))
			}
		}
		l.p.callbacks.unlock()
	}
}

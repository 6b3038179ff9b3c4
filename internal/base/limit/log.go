package limit

import (
	"cmp"
	"maps"
	"sync"
	"time"
)

const (
	every = time.Minute // between two lines of one kind
	most  = 1024        // Log.Most
)

// Log says which lines of a log are due: one of a kind a minute, and at most Most in all. The zero
// Log is ready for use, by any goroutine.
type Log[Kind comparable] struct {
	Most int // lines a minute; 0: 1024

	mu   sync.Mutex
	last map[Kind]line
	full time.Time // until then no known kind is due again
}

type line struct {
	at      time.Time
	skipped int // since then
}

// Due reports whether a line of that kind is due now, and how many lines were skipped since
// the last one.
func (l *Log[Kind]) Due(kind Kind) (skipped int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	last, known := l.last[kind]
	if known && now.Sub(last.at) < every {
		l.last[kind] = line{last.at, last.skipped + 1}
		return 0, false
	}
	if len(l.last) >= cmp.Or(l.Most, most) && !known && !l.makeRoom(now) {
		return 0, false
	}
	if l.last == nil {
		l.last = make(map[Kind]line)
	}
	l.last[kind] = line{at: now}
	return last.skipped, true
}

// makeRoom forgets the kinds that are due again, and reports whether there were any. Called
// with mu held.
func (l *Log[Kind]) makeRoom(now time.Time) bool {
	if now.Before(l.full) {
		return false
	}
	before := len(l.last)
	l.full = now.Add(every)
	maps.DeleteFunc(l.last, func(_ Kind, old line) bool {
		again := old.at.Add(every)
		if again.After(now) && again.Before(l.full) {
			l.full = again
		}
		return !again.After(now)
	})
	return len(l.last) < before
}

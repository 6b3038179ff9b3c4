// Package loglimit keeps what goes wrong again and again, or at a stranger's will, from
// filling a log.
package loglimit

import (
	"sync"
	"time"
)

const (
	every   = time.Minute // between two lines of one kind
	maxKept = 1024        // kinds remembered
)

// Limiter says which lines are due: one of a kind a minute. The zero Limiter is ready for
// use, by any goroutine.
type Limiter[Kind comparable] struct {
	mu   sync.Mutex
	last map[Kind]line
}

type line struct {
	at      time.Time
	skipped int // since then
}

// Due reports whether a line of that kind is due now, and how many were not since the last
// one that was.
func (l *Limiter[Kind]) Due(kind Kind) (skipped int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	last, known := l.last[kind]
	if known && now.Sub(last.at) < every {
		l.last[kind] = line{last.at, last.skipped + 1}
		return 0, false
	}
	if l.last == nil || len(l.last) >= maxKept {
		l.last = make(map[Kind]line)
	}
	l.last[kind] = line{at: now}
	return last.skipped, true
}

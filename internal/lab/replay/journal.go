package replay

import (
	"slices"
	"sync"
	"time"
)

// Journal is what happened on a wall clock, in any order, for a Recorder to be told in the order
// of time. It is safe for concurrent use; its zero value is empty.
type Journal struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	at   time.Time
	note func(at time.Duration)
}

// Add adds what happened at a time; note tells it.
func (j *Journal) Add(at time.Time, note func(at time.Duration)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry{at, note})
}

// Tell calls all that was added up to a time, with the time since start. What happened at the same
// time is told in the order in which it was added.
func (j *Journal) Tell(start, end time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.SortStableFunc(j.entries, func(a, b entry) int { return a.at.Compare(b.at) })
	for _, e := range j.entries {
		if !e.at.After(end) {
			e.note(e.at.Sub(start))
		}
	}
}

package store

import (
	"slices"
	"time"
)

// Pause is a pause of all elections of the node.
type Pause struct {
	Until time.Time     `json:"until"` // by the wall clock
	For   time.Duration `json:"for"`   // its length, in nanoseconds
	// Led are the groups that the node led last, as far as it knew.
	Led []string `json:"led,omitempty"`
}

// Left returns how much of the pause is left for a node that starts now. A wall clock that
// was set back does not make the pause longer than For. A nil pause is over.
func (p *Pause) Left(now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	return max(min(p.Until.Sub(now), p.For), 0)
}

// Pause returns the pause that was saved last, or nil. The caller must not
// change it.
func (s *Store) Pause() *Pause { return s.state.Load().Pause }

// SavePause makes a pause durable; nil ends the one before. An error is final, like one of
// Persist.
func (s *Store) SavePause(p *Pause) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state.Load().clone()
	if next.Pause = p; p != nil {
		saved := *p
		saved.Led = slices.Clone(p.Led)
		next.Pause = &saved
	}
	return s.commit("save the pause of elections", next, nil)
}

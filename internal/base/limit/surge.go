package limit

import (
	"sync"
	"time"
)

// Surge lets things pass one by one as long as they are few, and only counts them otherwise. Its
// methods may be called from any goroutine.
type Surge[Kind comparable] struct {
	Most int // how many pass in a second

	mu     sync.Mutex
	began  time.Time // the present second
	passed int       // in it
	counts map[Kind]int
}

// Passes reports whether one more of that kind passes now. If not, it is counted.
func (s *Surge[Kind]) Passes(kind Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.began) >= time.Second {
		s.began, s.passed = now, 0
	}
	if s.passed < s.Most {
		s.passed++
		return true
	}
	if s.counts == nil {
		s.counts = map[Kind]int{}
	}
	s.counts[kind]++
	return false
}

// Take returns how many of each kind were counted since the last call.
func (s *Surge[Kind]) Take() map[Kind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	s.counts = nil
	return counts
}

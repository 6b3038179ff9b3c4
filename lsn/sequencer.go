package lsn

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// ErrNotLeading is what a Sequencer answers outside a leadership.
var ErrNotLeading = errors.New("lsn: not leading")

// Sequencer issues LSNs for one leadership after another: the first of each is
// (term, 1), and the counter rises by one with each. The zero Sequencer is ready
// and leads nothing. It is safe for concurrent use; Next takes no lock while a
// leadership lasts.
//
// An LSN that Next returned is of a leadership that was current during the call;
// whether it still is when the message goes out is for the lease and the
// followers' fences to say.
type Sequencer struct {
	mu      sync.Mutex                 // serializes Begin and End
	current atomic.Pointer[leadership] // the newest, ended or not; nil before the first
}

// Begin starts the leadership of term, 1 to MaxTerm, and ends the one before
// it, if that still lasts. The term must be higher than that of every leadership
// before; otherwise nothing changes and the error names both.
func (s *Sequencer) Begin(term Term) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !term.Led() {
		return fmt.Errorf("lsn: begin leadership of term %d: want a term of 1 to %d", term, MaxTerm)
	}
	old := s.current.Load()
	if old != nil && term <= old.term {
		return fmt.Errorf("lsn: begin leadership of term %d: want a term above %d, the last one", term,
			old.term)
	}
	// The old one ends first: then all that it issued precedes all that the
	// new one will, also in time.
	old.end()
	s.current.Store(&leadership{term: term})
	return nil
}

// End ends the leadership: once it has returned, Next issues nothing until the
// next Begin. Without a leadership it does nothing.
func (s *Sequencer) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Load().end()
}

// Next issues an LSN. The error is ErrNotLeading outside a leadership, and wraps
// ErrOverflow after 2^63-1 LSNs in one term.
func (s *Sequencer) Next() (LSN, error) {
	issued, err := s.current.Load().issue()
	if err != ErrNotLeading {
		return issued, err
	}
	// A Begin may have ended the old leadership and not yet published the new
	// one; that is no moment without leadership, so wait for it.
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Load().issue()
}

// Newest returns the newest LSN issued; in a leadership that has issued none,
// (term, 0); before the first leadership, the zero LSN. It stays after End and
// never goes back.
func (s *Sequencer) Newest() LSN { return s.current.Load().newest() }

const (
	// ended marks a leadership's state. It shares the word with the counter, so
	// that ending and issuing exclude each other without a lock.
	ended uint64 = 1 << 63
	// lastCounter is the highest that a leadership issues.
	lastCounter = ended - 1
)

// leadership is one term's counter. The term never changes, so no LSN can mix
// the term of one leadership with the counter of another. A nil leadership has
// ended.
type leadership struct {
	term  Term
	state atomic.Uint64 // newest counter issued, and the ended mark
}

func (l *leadership) issue() (LSN, error) {
	if l == nil {
		return LSN{}, ErrNotLeading
	}
	for {
		counter := l.state.Load()
		switch {
		case counter&ended != 0:
			return LSN{}, ErrNotLeading
		case counter == lastCounter:
			return LSN{}, fmt.Errorf("lsn: next of %s: %w", l.newest(), ErrOverflow)
		case l.state.CompareAndSwap(counter, counter+1):
			return LSN{Term: l.term, Counter: counter + 1}, nil
		}
	}
}

func (l *leadership) end() {
	if l != nil {
		l.state.Or(ended)
	}
}

func (l *leadership) newest() LSN {
	if l == nil {
		return LSN{}
	}
	return LSN{Term: l.term, Counter: l.state.Load() &^ ended}
}

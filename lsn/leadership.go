package lsn

import (
	"fmt"
	"sync/atomic"
)

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

package loop

import "sync/atomic"

// signal is something that happens once. Those who wait for it make its channel: in most of a
// hundred thousand elections nobody does. It is safe for concurrent use.
type signal struct {
	c atomic.Pointer[chan struct{}]
}

// closed is the channel of all that has happened before anybody waited for it.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done is closed when it has happened.
func (s *signal) Done() <-chan struct{} {
	return *lazily(&s.c, func() *chan struct{} { c := make(chan struct{}); return &c })
}

// happen closes the channel, once.
func (s *signal) happen() {
	if c := s.c.Swap(&closed); c != nil && c != &closed {
		close(*c)
	}
}

func (s *signal) happened() bool { return s.c.Load() == &closed }

package netmesh

import (
	"context"
	"time"
)

// waker wakes the one goroutine that receives from it. To wake it twice before it receives is to
// wake it once.
type waker chan struct{}

func newWaker() waker { return make(waker, 1) }

func (w waker) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// pause waits for d, or until ctx ends or a or b is ready.
func pause(ctx context.Context, d time.Duration, a, b <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a:
	case <-b:
	case <-ctx.Done():
	}
}

// isClosed reports whether c, on which nothing is sent, is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// callbackLock is held by whoever calls the handler about a peer: the calls come
// one at a time and in order. It is taken before Mesh.mu, never after, and
// is a channel so that waiting for it is waiting in virtual time too.
type callbackLock chan struct{}

func (c callbackLock) lock()   { c <- struct{}{} }
func (c callbackLock) unlock() { <-c }

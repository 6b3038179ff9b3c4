package sdnotify

import (
	"context"
	"time"
)

// Watchdog is the time within which the manager wants a sign of life; 0 if it
// wants none.
func (n *Notifier) Watchdog() time.Duration {
	if n == nil {
		return 0
	}
	return n.watchdog
}

// Watch gives the manager a sign of life at every half of its interval, each time
// only after alive has returned true, until ctx ends; at once if none is wanted.
// alive is to ask what the service lives by, and may block: while it does nothing
// is sent, and the watchdog bites. failed is told, from the same goroutine, of
// signs that could not be sent; it may be nil.
func (n *Notifier) Watch(ctx context.Context, alive func() bool, failed func(error)) {
	if n.Watchdog() == 0 {
		return
	}
	next := time.NewTicker(max(n.watchdog/2, 1))
	defer next.Stop()
	for ctx.Err() == nil {
		if alive() {
			if err := n.send("WATCHDOG=1"); err != nil && failed != nil {
				failed(err)
			}
		}
		select {
		case <-next.C:
		case <-ctx.Done():
		}
	}
}

package guarded

import (
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// Watcher steps the machines whose guarded work must stop or has reached its deadline. It has a
// goroutine of its own, so that work is told in time even if the driver is held up.
type Watcher struct {
	clock clock.Clock
	mu    sync.Mutex
	queue Queue[*Machine]
	wake  chan struct{} // has an element if the first timer may have changed
	quit  chan struct{}
	ended chan struct{}
}

// NewWatcher returns a Watcher that uses c. Call Run next, and Stop at the end.
func NewWatcher(c clock.Clock) *Watcher {
	return &Watcher{
		clock: c, wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Now is the time on the clock of the deadlines.
func (w *Watcher) Now() elector.Time { return elector.Time(w.clock.Now()) }

// Run steps each machine that is due, until Stop.
func (w *Watcher) Run() {
	defer close(w.ended)
	alarm := clock.NewAlarm(w.clock)
	defer alarm.Close()
	for {
		due, next := w.due()
		for _, m := range due {
			m.Feed(leadership.Tick{}) // arms its timer again if there is a next deadline
		}
		if len(due) > 0 {
			continue
		}
		alarm.Set(time.Duration(next))
		select {
		case <-w.wake:
		case <-alarm.Rings():
		case <-w.quit:
			return
		}
	}
}

// Stop ends Run and waits for it.
func (w *Watcher) Stop() {
	close(w.quit)
	<-w.ended
}

// arm makes t due at the given time or before. A deadline often moves on, as a lease does with
// every heartbeat: then the timer keeps the earlier time, and is armed again when it is due.
func (w *Watcher) arm(t *Timer[*Machine], at elector.Time) {
	if at == elector.Never {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Set() && t.At <= at {
		return
	}
	w.queue.Set(t, at)
	if w.queue[0].Timer == t {
		Wake(w.wake)
	}
}

// Wake fills a channel that holds one element. It never waits.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// due removes the timers that are due, and returns their machines and when the next one is due.
func (w *Watcher) due() (due []*Machine, next elector.Time) {
	now := w.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.queue.Next() <= now {
		due = append(due, w.queue[0].Owner)
		w.queue.Drop(w.queue[0].Timer)
	}
	return due, w.queue.Next()
}

package guarded

import (
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// Watcher wakes the machines whose work must stop, or has had its time. It has a goroutine of
// its own, so that guarded work learns in time that it must stop even if the driver is held up.
type Watcher struct {
	clock clock.Clock
	mu    sync.Mutex
	queue Queue[*Machine]
	wake  chan struct{} // has an element if the first timer may have changed
	quit  chan struct{}
	ended chan struct{}
}

// NewWatcher returns a Watcher that goes by c. Run is to be called, and then Stop.
func NewWatcher(c clock.Clock) *Watcher {
	return &Watcher{
		clock: c, wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Now is the time by which deadlines count.
func (w *Watcher) Now() elector.Time { return elector.Time(w.clock.Now()) }

// Run steps each machine that is due, until Stop.
func (w *Watcher) Run() {
	defer close(w.ended)
	alarm := clock.NewAlarm(w.clock)
	defer alarm.Close()
	for {
		due, next := w.due()
		for _, m := range due {
			m.Feed(leadership.Tick{}) // arms its timer again, if there is more to come
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

// arm asks for t to be due at the given time or before. A time that moves on, as a lease
// does with every heartbeat, is looked at when the time before it has come.
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
	if w.queue[0] == t {
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

func (w *Watcher) due() (due []*Machine, next elector.Time) {
	now := w.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.queue.Next() <= now {
		due = append(due, w.queue[0].Owner)
		w.queue.Remove(w.queue[0])
	}
	return due, w.queue.Next()
}

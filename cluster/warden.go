package cluster

import (
	"container/heap"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// warden tells guarded work in time that it must stop. It has a goroutine of its
// own, so that a driver which is held up makes nobody late, and one timer for all
// leaderships: each is looked at when its lease, as last seen, comes near its end.
type warden struct {
	clock clock.Clock
	mu    sync.Mutex
	due   watches
	wake  chan struct{} // has an element if the earliest watch has changed
}

// watch is when to look at a leadership next. The warden's lock guards it.
type watch struct {
	at    elector.Time
	place int // in watches; nowhere if the leadership is not watched
}

// watches is a heap of leaderships, each in it at most once, the earliest first.
type watches []*Leadership

func (w watches) Len() int           { return len(w) }
func (w watches) Less(i, j int) bool { return w[i].watch.at < w[j].watch.at }
func (w watches) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].watch.place, w[j].watch.place = i, j
}

// Push and Pop are for package heap.
func (w *watches) Push(x any) {
	l := x.(*Leadership)
	l.watch.place = len(*w)
	*w = append(*w, l)
}

// Pop removes the last element, as package heap wants it.
func (w *watches) Pop() any {
	last := (*w)[len(*w)-1]
	(*w)[len(*w)-1] = nil
	*w = (*w)[:len(*w)-1]
	last.watch.place = nowhere
	return last
}

func newWarden(c clock.Clock) *warden { return &warden{clock: c, wake: make(chan struct{}, 1)} }

// add watches a leadership that has begun, or whose deadline moves no more.
func (w *warden) add(l *Leadership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	phase, at := l.state()
	if phase == over || at == elector.Never {
		return // without a lease nothing runs out
	}
	if phase == serving {
		at = at.Add(-l.e.g.margin)
	}
	if l.watch.at = at; l.watch.place == nowhere {
		heap.Push(&w.due, l)
	} else {
		heap.Fix(&w.due, l.watch.place)
	}
	if w.due[0] == l {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// run watches until quit, and then ends what is left: nobody would do it any more.
// It lets the driver know by inbox what it ended, without ever waiting for it.
func (w *warden) run(inbox chan<- event, quit <-chan struct{}) {
	alarm := clock.NewAlarm(w.clock)
	defer alarm.Close()
	var news []event
	for {
		ended, next := w.look()
		for _, l := range ended {
			news = append(news, event{do: func() { l.e.n.ended(l) }})
		}
		alarm.Set(time.Duration(next))
		out, first := inbox, event{}
		if len(news) == 0 {
			out = nil
		} else {
			first = news[0]
		}
		select {
		case out <- first:
			news = news[1:]
		case <-w.wake:
		case <-alarm.Rings():
		case <-quit:
			w.endAll()
			return
		}
	}
}

// look acts on every leadership whose time has come, and says which of them are
// over now and when to look again.
func (w *warden) look() (ended []*Leadership, next elector.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := elector.Time(w.clock.Now())
	for len(w.due) > 0 && w.due[0].watch.at <= now {
		l := heap.Pop(&w.due).(*Leadership)
		next := l.check(now)
		switch {
		case next != elector.Never:
			l.watch.at = next
			heap.Push(&w.due, l)
		case l.at() == over:
			ended = append(ended, l)
		}
	}
	if len(w.due) == 0 {
		return ended, elector.Never
	}
	return ended, w.due[0].watch.at
}

// check tells the work to stop if the lease is about to end, ends the leadership
// if its deadline has passed, and says when to look again: Never if there is
// nothing to come.
func (l *Leadership) check(now elector.Time) elector.Time {
	switch phase, end := l.state(); {
	case phase == over || end == elector.Never || end == 0:
		return elector.Never // 0: the driver is about to end it
	case phase == stopping && now >= end:
		l.finish(elector.LeaseExpired)
		return elector.Never
	case phase == stopping:
		return end
	case now >= end.Add(-l.e.g.margin):
		l.stopBy(elector.LeaseExpired, end)
		return max(end, now+1)
	default:
		return end.Add(-l.e.g.margin)
	}
}

func (w *warden) endAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.due {
		l.finish(elector.Stopped)
	}
	w.due = nil
}

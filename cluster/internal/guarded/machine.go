// Package guarded keeps guarded work within its lease. A Machine is the leadership.Machine of one
// election behind a lock. The goroutines of the application, the driver of the elections and the
// Watcher of deadlines step it. Whichever step ends the work tells it to stop at once. Requests
// to the elector wait until the driver takes them.
package guarded

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
)

// Machine is safe for concurrent use.
type Machine struct {
	watcher *Watcher
	ask     func() // tells the driver that there are requests
	// leaseEnd is a copy of State.LeaseEnd, to be read without the lock.
	leaseEnd atomic.Int64
	shared   atomic.Pointer[Shared] // extends the lease; nil for none
	lastID   atomic.Uint64

	mu       sync.Mutex
	inner    leadership.Machine
	holder   *holder         // nil for nobody
	requests []elector.Input // to the elector
	ended    error
	deadline Timer[*Machine] // the watcher's lock guards it
}

// holder is the present campaign or leadership, until it is released.
type holder struct {
	id    leadership.ID
	over  chan struct{} // closed when its leadership is over
	apply Apply
}

// Apply carries out the effects of a step on a holder. It is called under a lock, so it must not
// call the machine. It gets values, because a pointer would cost an allocation in every step.
type Apply func(leadership.Effects, leadership.State)

// Init makes a machine whose deadlines w watches. It calls ask when there are requests, under a
// lock: ask must neither wait nor call the machine.
func (m *Machine) Init(cfg leadership.Config, w *Watcher, ask func()) {
	m.watcher, m.ask, m.inner, m.deadline.Owner = w, ask, *leadership.New(cfg), m
}

// Shared is the end of a lease that the leaderships of many elections have in common. Set and End
// are safe for concurrent use.
type Shared struct{ end atomic.Int64 }

// Set moves the end.
func (s *Shared) Set(end elector.Time) { s.end.Store(int64(end)) }

// End is the end.
func (s *Shared) End() elector.Time { return elector.Time(s.end.Load()) }

// Share is for the driver. It lets a leadership last as long as s says, from now on, or with nil
// only as long as Leads says. Before nil the driver must have said by Leads or Lost how long it
// lasts.
func (m *Machine) Share(s *Shared) { m.shared.Store(s) }

// LeaseEnd is the time before which the node may say that it leads; 0 if it does not lead.
func (m *Machine) LeaseEnd() elector.Time {
	s := m.shared.Load()
	if s == nil {
		return elector.Time(m.leaseEnd.Load())
	}
	shared, own := s.End(), elector.Time(m.leaseEnd.Load())
	if own == 0 || m.shared.Load() != s { // the leadership may be over, and the shared lease not
		return own
	}
	return max(own, shared)
}

// State returns the state of the leaderships.
func (m *Machine) State() leadership.State {
	now := m.watcher.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.extend(now)
	return m.inner.State()
}

// Overdue reports whether guarded work goes on although its leadership is over.
func (m *Machine) Overdue() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inner.State().Phase == leadership.Overdue
}

// Ended is why the election has ended on this node; nil while it is open.
func (m *Machine) Ended() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// NewID returns the ID of a new campaign.
func (m *Machine) NewID() leadership.ID { return leadership.ID(m.lastID.Add(1)) }

// Campaign begins a campaign. apply gets its effects. over is closed when the leadership that the
// campaign got is over for good. A campaign that is refused at once has neither.
func (m *Machine) Campaign(in leadership.Campaign, apply Apply) (
	over <-chan struct{}, refused leadership.Refusal,
) {
	now := m.watcher.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.advance(now, in); e.Refused == in.ID {
		return nil, e.Refusal
	}
	m.holder = &holder{in.ID, make(chan struct{}), apply}
	return m.holder.over, leadership.NotRefused
}

// Feed steps the machine with an input.
func (m *Machine) Feed(in leadership.Input) {
	now := m.watcher.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now, in)
}

// Change is Feed, unless the election has ended: then it returns the reason. It also returns the
// state before the step.
func (m *Machine) Change(in leadership.Input) (before leadership.State, err error) {
	now := m.watcher.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	before = m.inner.State()
	if m.ended == nil {
		m.advance(now, in)
	}
	return before, m.ended
}

// Close ends the election on this node for the given reason. It reports whether guarded work goes
// on that was cut off: leadership is not handed over then.
func (m *Machine) Close(why error, abrupt bool) (cut bool) {
	now := m.watcher.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended == nil {
		m.ended = why
	}
	s := m.inner.State()
	m.advance(now, leadership.Close{Abrupt: abrupt})
	return abrupt && s.Phase.Working() && s.Term != 0
}

// Working returns a channel that is closed when the guarded work is over, and its deadline; nil if
// there is no such work.
func (m *Machine) Working() (over <-chan struct{}, deadline elector.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.inner.State(); s.Phase.Working() {
		return m.holder.over, s.Deadline
	}
	return nil, 0
}

// Leads is for the driver. It reports the lease after a step of the elector, and whether that step
// wants the work to stop.
func (m *Machine) Leads(lease elector.Lease, h elector.Handover, stopWork bool) {
	now := m.watcher.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now, leadership.Lease{
		Term: lease.Term, End: lease.End,
		Handover: h != (elector.Handover{}), Pending: len(m.requests) > 0,
	})
	if stopWork {
		m.advance(now, leadership.StopWork{By: h.End, Why: h.Why})
	}
}

// NextRequest is for the driver. It takes the next request to the elector.
func (m *Machine) NextRequest() (elector.Input, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		m.requests = nil
		return nil, false
	}
	in := m.requests[0]
	m.requests = m.requests[1:]
	return in, true
}

// advance steps the machine, and tells the work at once what the step decided, so that work stops
// in time even if the driver is held up. It runs under the lock. The caller reads the clock before
// it takes the lock, because the clock of a test may block.
func (m *Machine) advance(now elector.Time, in leadership.Input) leadership.Effects {
	m.extend(now)
	return m.step(now, in)
}

// extend lets the leaderships know of the shared lease. It runs under the lock.
func (m *Machine) extend(now elector.Time) {
	s := m.shared.Load()
	if s == nil {
		return
	}
	if term, own := m.inner.Lease(); term != 0 && s.End() > own {
		m.step(now, leadership.Lease{Term: term, End: s.End(), Pending: len(m.requests) > 0})
	}
}

// step steps the machine and carries the effects out. It runs under the lock.
func (m *Machine) step(now elector.Time, in leadership.Input) leadership.Effects {
	e := m.inner.Step(now, in)
	s := m.inner.State()
	m.leaseEnd.Store(int64(s.LeaseEnd))
	for _, in := range e.Requests {
		m.request(in)
	}
	m.watcher.arm(&m.deadline, e.Wake)
	if m.holder == nil {
		return e
	}
	m.holder.apply(e, s)
	if e.Over {
		close(m.holder.over)
	}
	if s.ID != m.holder.id {
		m.holder = nil
	}
	return e
}

// request adds a request to the elector. Where only the newest of a kind counts it replaces the
// older one, so that the list stays short while the driver hangs. It runs under the lock.
func (m *Machine) request(in elector.Input) {
	switch in.(type) {
	case elector.Prefer, elector.Eligible, elector.Resign, elector.Tick:
		m.requests = slices.DeleteFunc(m.requests, func(old elector.Input) bool {
			return reflect.TypeOf(old) == reflect.TypeOf(in)
		})
	}
	m.requests = append(m.requests, in)
	m.ask()
}

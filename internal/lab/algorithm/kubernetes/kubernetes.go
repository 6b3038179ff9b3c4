// Package kubernetes is the leader election of client-go (tools/leaderelection) with a Lease
// object: who renews the record in it leads, and who has seen no change of the record for a
// lease duration takes it over, by compare-and-swap on its resource version.
//
// The client's rules, with the ratios of its defaults of 15, 10 and 2 seconds; the lease
// duration is Timing.Inactivity:
//   - A candidate tries at intervals of the retry period times 1 to 2.2, at random. A try
//     reads the record. If it has changed, the candidate observes it: it keeps the record
//     and the time on its own clock. If the observation is a lease duration old, or nobody
//     holds the record, it writes itself into it, with leaderTransitions one higher.
//   - The leader renews a retry period after its last success. It writes at once, over the
//     version that it knows; if that fails it reads first. It tries every retry period.
//   - It gives up at the renew deadline, counted from the first of these tries, and not
//     before: also not when it sees another holder. Then its process ends, and the next one
//     is a candidate with a new identity that has observed nothing.
//   - An answer that takes half the renew deadline comes too late (controller-runtime).
//   - A leader that is stopped releases the lease (ReleaseOnCancel).
//
// The times in the record are for people: a client trusts only its own clock. So clocks may
// show any time, but their rates must not differ by more than the lease duration to the renew
// deadline and the retry period: 15 to 12. The API server has no clock here.
//
// A follower names the holder that it observed, also after the lease has run out, as
// GetLeader does. View.Term is leaderTransitions plus one. It is a fencing number that
// client-go offers to nobody: it has no fencing.
//
// It guarantees one holder per leaderTransitions. Two at a time lead after a pause: a paused
// leader believes until its client runs and finds that the renew deadline has passed; if its
// process slept between two tries, it believes for a renew deadline more. It needs the store:
// a member that alone reaches it leads, whomever else it can reach.
package kubernetes

import (
	"math/bits"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// Kubernetes is the election through a Lease object.
var Kubernetes = algorithm.Algorithm{
	Name:             "kubernetes",
	Title:            "Kubernetes lease",
	Source:           "client-go tools/leaderelection",
	New:              newMachine,
	Store:            func(algorithm.Config) algorithm.Machine { return &server{} },
	OneLeaderPerTerm: true,
}

// machine is one member's LeaderElector.
type machine struct {
	self          algorithm.NodeID
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
	view          algorithm.View

	uuid         uint64 // of this process
	observed     Record
	observedTime algorithm.Time
	leading      bool

	xid      uint64
	waits    bool           // for the answer to request xid
	fast     bool           // that is a write without a read before
	tried    algorithm.Time // when this try began
	lateAt   algorithm.Time // when the answer comes too late
	retryAt  algorithm.Time // when the next try begins
	deadline algorithm.Time // of a leader's tries; Never between them
	entropy  uint64

	effects algorithm.Effects
}

func newMachine(cfg algorithm.Config) algorithm.Machine {
	lease := cfg.Elector.Timing.Inactivity()
	return &machine{self: cfg.Self(), leaseDuration: lease, renewDeadline: lease * 10 / 15,
		retryPeriod: lease * 2 / 15, deadline: elector.Never}
}

// View implements algorithm.Machine.
func (m *machine) View() algorithm.View { return m.view }

// Step implements algorithm.Machine.
func (m *machine) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	m.effects = algorithm.Effects{Messages: m.effects.Messages[:0], Wake: elector.Never}
	m.entropy = entropy
	if _, ok := in.(algorithm.Start); ok {
		m.xid = entropy >> 1 // apart from those of the process before
		m.run(now)
		m.see("start")
	}
	if m.view.Role == elector.Dormant {
		return m.effects
	}
	m.tick(now) // a context that has ended takes no answer any more
	switch in := in.(type) {
	case algorithm.Received:
		if a, ok := in.Message.(Answer); ok && m.waits && a.Xid == m.xid {
			m.waits = false
			m.answered(now, a)
		}
	case elector.Stop:
		if m.leading && m.holds() {
			m.write(Record{Transitions: m.observed.Transitions})
		}
		m.view, m.effects.Why = algorithm.View{}, "released"
		return m.effects
	}
	m.effects.Wake = min(m.deadline, m.retryAt)
	if m.waits {
		m.effects.Wake = min(m.deadline, m.lateAt)
	}
	return m.effects
}

// run begins a process: a candidate that has observed nothing.
func (m *machine) run(now algorithm.Time) {
	m.uuid = m.entropy + uint64(now)
	m.observed, m.leading, m.waits = Record{}, false, false
	m.deadline, m.retryAt = elector.Never, now
	m.try(now)
}

func (m *machine) tick(now algorithm.Time) {
	switch {
	case now >= m.deadline:
		m.run(now)
		m.see("failed to renew before the renew deadline")
	case m.waits && now >= m.lateAt:
		m.waits = false
		m.failed(now)
	case !m.waits && now >= m.retryAt:
		m.try(now)
	}
}

// try is tryAcquireOrRenew.
func (m *machine) try(now algorithm.Time) {
	m.tried, m.lateAt = now, now.Add(m.renewDeadline/2)
	if m.leading && m.deadline == elector.Never {
		m.deadline = now.Add(m.renewDeadline)
	}
	m.fast = m.holds() && m.valid()
	if m.fast {
		m.write(m.record(m.observed.Transitions))
		return
	}
	m.get()
}

// holds reports whether the newest observed record is of this process.
func (m *machine) holds() bool { return m.observed.Holder == m.self && m.observed.UUID == m.uuid }

// valid reports whether the lease of the newest observed record runs when the try begins.
func (m *machine) valid() bool { return m.tried < m.observedTime.Add(m.leaseDuration) }

func (m *machine) record(transitions uint64) Record {
	return Record{Holder: m.self, UUID: m.uuid, Transitions: transitions}
}

// answered goes on with the try.
func (m *machine) answered(now algorithm.Time, a Answer) {
	switch {
	case a.Wrote:
		m.observed, m.observedTime = a.Record, now
		m.leading, m.deadline = true, elector.Never
		m.retryAt = now.Add(m.retryPeriod)
		m.see("wrote the lease")
		return
	case a.Read:
		m.observe(now, a.Record)
		switch {
		case a.Record.Version == 0:
			m.write(m.record(0))
		case m.holds():
			m.write(m.record(a.Record.Transitions))
		case a.Record.Holder == "" || !m.valid():
			m.write(m.record(a.Record.Transitions + 1))
		default:
			m.failed(now)
		}
	case m.fast:
		m.fast = false
		m.get()
	default:
		m.failed(now)
	}
}

func (m *machine) observe(now algorithm.Time, r Record) {
	if r != m.observed {
		m.observed, m.observedTime = r, now
		m.see("observed")
	}
}

// failed ends a try. A candidate tries at random times, a leader at the beats of a ticker; a
// beat during a slow try is not lost.
func (m *machine) failed(now algorithm.Time) {
	if m.leading {
		m.retryAt = max(now, m.tried.Add(m.retryPeriod))
		return
	}
	jitter, _ := bits.Mul64(m.entropy, uint64(m.retryPeriod*12/10))
	m.retryAt = now.Add(m.retryPeriod + time.Duration(jitter))
}

func (m *machine) get() { m.ask(Get{Xid: m.xid + 1}) }

// write asks to replace the newest observed version.
func (m *machine) write(r Record) {
	r.Version = m.observed.Version
	m.ask(Write{Xid: m.xid + 1, Record: r})
}

func (m *machine) ask(request algorithm.Message) {
	m.xid++
	m.waits = true
	m.effects.Messages = append(m.effects.Messages,
		algorithm.Envelope{To: algorithm.StoreNode, Message: request})
}

// see takes the view that the machine's state has. A leader whose renewal fails leads on in
// the leadership that it had.
func (m *machine) see(why string) {
	view := algorithm.View{Role: elector.Candidate}
	switch {
	case m.leading && !m.holds():
		view = m.view
	case m.observed.Holder != "":
		view = algorithm.View{Role: elector.Follower, Leader: m.observed.Holder,
			Term: lsn.Term(m.observed.Transitions + 1)}
		if m.leading {
			view.Role = elector.Leader
		} else if m.observed.Holder == m.self {
			view = algorithm.View{Role: elector.Candidate} // the process before
		}
	}
	if view != m.view {
		m.view, m.effects.Why = view, why
	}
}

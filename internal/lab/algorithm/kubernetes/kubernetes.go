// Package kubernetes is the leader election of client-go (tools/leaderelection) with a Lease
// object: who renews the record in it leads, and who has seen no change of the record for a
// lease duration takes it over, by compare-and-swap on its resource version. Read: client-go at
// 32ce75a7d (July 2026), tools/leaderelection/{leaderelection.go, resourcelock}, and
// controller-runtime at 86a0d40e (August 2026).
//
// The client's rules, with the ratios of its defaults of 15, 10 and 2 seconds; the lease
// duration is Timing.Inactivity:
//   - A candidate tries at intervals of the retry period times 1 to 2.2, at random. A try
//     reads the record. If it has changed, the candidate observes it: it keeps the record
//     and the time on its own clock. If the observation is a lease duration old, or nobody
//     holds the record, it writes itself into it, with leaderTransitions one higher.
//   - The leader renews at once, and then a retry period after each success. It writes over the
//     version that it knows; if that fails it reads first. Until it succeeds it tries at the
//     beats of a retry period.
//   - It gives up at the renew deadline, counted from the first of these tries, and not
//     before: also not when it sees another holder. Then its process ends, and the next one
//     is a candidate with a new identity that has observed nothing.
//   - A request that takes half the renew deadline has failed (NewFromKubeconfig and
//     controller-runtime set that). Over a new connection it is sent again.
//   - With ReleaseOnCancel, renew releases however it ends, at the renew deadline as when it is
//     stopped: it reads the record and writes one without a holder over it, again after each
//     conflict, for a renew deadline at most. It asks whom it observed last, not whom it reads:
//     so it may release the lease of one that took over meanwhile.
//   - Without ReleaseOnCancel, the lease of one that is stopped runs out.
//
// Leading is from OnStartedLeading until its context ends or OnStoppedLeading is called. At the
// renew deadline both come after the release, which takes a request's time-out when the store
// does not answer: the renew deadline and that are together as long as a lease. When it is
// stopped, the context ends first.
//
// The times in the record are for people: a client trusts only its own clock. So clocks may
// show any time, but their rates must not differ by more than the lease duration to the renew
// deadline and the retry period: 15 to 12. The API server needs no clock.
//
// A follower names the holder that it observed, also after the lease has run out, as
// GetLeader does. View.Term is leaderTransitions plus one. It is a fencing number that
// client-go offers to nobody: it has no fencing.
//
// It guarantees one holder per leaderTransitions. Two at a time lead after a pause: a paused
// leader believes until its client runs and finds that the renew deadline has passed; if its
// process slept between two tries, it believes for a renew deadline more. With ReleaseOnCancel
// two lead without a pause, too: while a release waits for an answer. It needs the store: a
// member that alone reaches it leads, whomever else it can reach.
package kubernetes

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// The election through a Lease object, without ReleaseOnCancel and with it.
var (
	Kubernetes = variant("kubernetes", "Kubernetes lease", false)
	Release    = variant("kubernetes-release", "Kubernetes, ReleaseOnCancel", true)
)

func variant(name, title string, releases bool) algorithm.Algorithm {
	return algorithm.Algorithm{
		Name: name, Title: title, Source: "client-go tools/leaderelection",
		New: member.Maker(func(m *member.Member) member.Rules {
			e := &machine{Member: m, releases: releases, leaseDuration: m.Timing.Inactivity()}
			e.renewDeadline, e.retryPeriod = e.leaseDuration*10/15, e.leaseDuration*2/15
			e.run("start")
			return e
		}),
		Store: member.Maker(serve), OneLeaderPerTerm: true,
		Tuned:    algorithm.OnAnyLink(time.Second, 15), // 15, 10 and 2 s
		Deviates: "a process that has ended starts again at once",
	}
}

// machine is one member's LeaderElector.
type machine struct {
	*member.Member
	releases                                  bool // ReleaseOnCancel
	leaseDuration, renewDeadline, retryPeriod time.Duration

	uuid         uint64 // of this process
	observed     Record
	observedTime algorithm.Time
	leading      bool
	releasing    bool

	asked    Request        // waits for its answer, if it has a Kind
	fast     bool           // it is a write without a read before
	tried    algorithm.Time // when this try began
	first    algorithm.Time // when a leader's first try after a success did
	late     member.Timer   // the answer comes too late
	retry    member.Timer   // the next try
	deadline member.Timer   // of a leader's tries, unarmed between them; of its release
}

// run begins a process: a candidate that has observed nothing.
func (m *machine) run(why string) {
	m.uuid = m.Entropy + uint64(m.Now)
	m.observed, m.leading, m.releasing, m.deadline = Record{}, false, false, member.Timer{}
	m.see(why)
	m.try()
}

// Input asks again over a new connection, and ends the context of one that is stopped.
func (m *machine) Input(in algorithm.Input) {
	switch in := in.(type) {
	case elector.LinkUp:
		if in.Peer == algorithm.StoreNode && m.asked.Kind != "" {
			m.Send(member.Store, m.asked)
		}
	case elector.Stop:
		m.Stays = m.leading && m.releases
		m.leading = false
		m.see("context ended")
		if m.Stays && !m.releasing {
			m.release()
		}
	}
}

// Receive acts on an answer. A context that has ended takes none any more.
func (m *machine) Receive(_ int, msg algorithm.Message) {
	m.Tick()
	if a, ok := msg.(Answer); ok && m.asked.Kind != "" && a.Xid == m.asked.Xid {
		m.answered(a)
	}
}

func (m *machine) Tick() algorithm.Time {
	switch {
	case m.Due(&m.deadline):
		if m.releases && !m.releasing {
			m.release()
		} else {
			m.over("failed to renew before the renew deadline")
		}
	case m.Due(&m.late):
		m.answered(Answer{}) // an error
	case m.Due(&m.retry):
		m.try()
	}
	return member.Earliest(m.deadline, m.late, m.retry)
}

// try is tryAcquireOrRenew.
func (m *machine) try() {
	m.tried = m.Now
	if m.leading && m.deadline.When() == elector.Never {
		m.first, m.deadline = m.Now, m.After(m.renewDeadline)
	}
	if m.fast = m.holds() && m.valid(); m.fast {
		m.write(m.observed, m.self(), m.observed.Transitions)
	} else {
		m.ask("Get", Record{})
	}
}

func (m *machine) self() Holder { return Holder{m.Name(m.Self), m.uuid} }

// holds reports whether the newest observed record is of this process.
func (m *machine) holds() bool { return m.observed.Holder == m.self() }

// valid reports whether the lease of the newest observed record runs when the try begins.
func (m *machine) valid() bool { return m.tried < m.observedTime.Add(m.leaseDuration) }

func (m *machine) answered(a Answer) {
	m.asked.Kind, m.late = "", member.Timer{}
	switch {
	case m.releasing:
		m.released(a)
	case a.Kind == "Updated":
		m.retry = m.After(m.retryPeriod)
		if !m.leading {
			m.retry = m.After(0)
		}
		m.observed, m.observedTime = a.Record, m.Now
		m.leading, m.deadline = true, member.Timer{}
		m.see("wrote the lease")
	case a.Kind == "NotFound":
		m.write(a.Record, m.self(), 0)
	case a.Kind == "Lease":
		m.observe(a.Record)
	case m.fast:
		m.fast = false
		m.ask("Get", Record{})
	default:
		m.failed()
	}
}

func (m *machine) observe(r Record) {
	if r != m.observed {
		m.observed, m.observedTime = r, m.Now
		m.see("observed")
	}
	switch {
	case m.holds():
		m.write(r, m.self(), r.Transitions)
	case r.Holder.Node == "" || !m.valid():
		m.write(r, m.self(), r.Transitions+1)
	default:
		m.failed()
	}
}

// failed ends a try. A candidate tries at random times, a leader at the beats of a ticker; one
// beat during a slow try is not lost.
func (m *machine) failed() {
	m.retry = m.After(m.retryPeriod + m.Draw(m.retryPeriod*12/10))
	if m.leading {
		period := algorithm.Time(m.retryPeriod)
		m.retry = member.At(max(m.Now, m.first+((m.tried-m.first)/period+1)*period))
	}
}

func (m *machine) release() {
	m.releasing, m.retry, m.deadline = true, member.Timer{}, m.After(m.renewDeadline)
	m.ask("Get", Record{})
}

func (m *machine) released(a Answer) {
	switch {
	case a.Kind == "Lease" && m.holds():
		m.write(a.Record, Holder{}, a.Transitions)
	case a.Kind == "Conflict":
		m.ask("Get", Record{})
	default:
		m.over("released, or tried to")
	}
}

// over is OnStoppedLeading.
func (m *machine) over(why string) {
	m.asked.Kind, m.late, m.retry = "", member.Timer{}, member.Timer{}
	if m.Stays {
		m.Stays, m.Why = false, why
		return
	}
	m.run(why)
}

// write asks to replace a version of the record.
func (m *machine) write(over Record, holder Holder, transitions uint64) {
	kind := "Update"
	if over.Version == 0 {
		kind = "Create"
	}
	m.ask(kind, Record{Holder: holder, Transitions: transitions, Version: over.Version})
}

func (m *machine) ask(kind string, r Record) {
	m.asked = Request{Kind: kind, Xid: m.asked.Xid + 1, Record: r}
	m.late = m.After(m.renewDeadline / 2)
	m.Send(member.Store, m.asked)
}

// see takes the view that the machine's state has. A leader whose renewal fails leads on in
// the leadership that it had.
func (m *machine) see(why string) {
	holder := m.Rank(m.observed.Holder.Node)
	role := elector.Follower
	switch {
	case m.leading && !m.holds():
		return
	case m.leading:
		role = elector.Leader
	case holder == member.Nobody || holder == m.Self: // the process before
		m.Term = 0
		m.Become(elector.Candidate, member.Nobody, why)
		return
	}
	m.Term = lsn.Term(m.observed.Transitions + 1)
	m.Become(role, holder, why)
}

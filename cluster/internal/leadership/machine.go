package leadership

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Phase is how far a campaign, and then its leadership, has come.
type Phase uint8

// The phases.
const (
	Idle     Phase = iota // nobody campaigns, and no work is held
	Waiting               // a campaign waits for the leadership
	Serving               // the work may go on
	Stopping              // the work was told to stop; the node keeps others from leading
	Overdue               // another node may lead, and the work has not been released
)

// String returns the phase's name in lower case.
func (p Phase) String() string {
	return [...]string{"idle", "waiting", "serving", "stopping", "overdue"}[p]
}

// Working reports whether work that excludes that of other nodes may go on.
func (p Phase) Working() bool { return p == Serving || p == Stopping }

// Config is what a machine needs to know.
type Config struct {
	MayStand      bool          // the node stands for election, until Candidacy says otherwise
	Priority      int           // of the node, until Prefer changes it
	AwaitCampaign bool          // but not before the first Campaign
	Margin        time.Duration // how long before the end of the lease work must stop
	Lease         time.Duration // the time that work without a lease has to stop
}

// State is what a machine remembers.
type State struct {
	ID ID // who waits, or holds the leadership; 0 in Idle

	Term     lsn.Term     // that the node leads; 0 if it does not lead
	LeaseEnd elector.Time // until when the node may say that it leads; 0 if it does not lead
	// Deadline is until when the work may go on. It is LeaseEnd while the phase is Serving;
	// from then on it never becomes later.
	Deadline elector.Time

	Unfit    string // why the application is not fit to lead; "" if it is
	Priority int    // the newest
	Phase    Phase
	OnDemand bool // the node stands only while somebody campaigns or holds a leadership
	MayStand bool // the node is to stand
	Stood    bool // it was to stand at some time
	Able     bool // what the elector was told
	Resigned bool // no campaign may follow the present leadership
	Closed   bool
}

// Wanted reports whether anybody wants this node to lead.
func (s *State) Wanted() bool { return !s.OnDemand || s.Phase != Idle }

// Machine is the life of the leaderships of one election.
type Machine struct {
	margin, spare time.Duration // Config.Margin and Config.Lease
	state         State
}

// step is a step of a machine, and what it asks for.
type step struct {
	*Machine

	eff Effects
}

// New returns a machine that is Idle. The elector counts as able, as a new one is.
func New(cfg Config) *Machine {
	return &Machine{margin: cfg.Margin, spare: cfg.Lease, state: State{
		OnDemand: cfg.AwaitCampaign, MayStand: cfg.MayStand, Stood: cfg.MayStand,
		Priority: cfg.Priority, Able: true,
	}}
}

// State returns what the machine remembers.
func (m *Machine) State() State { return m.state }

// Lease returns the term that the node leads and until when; zero if it does not lead.
func (m *Machine) Lease() (lsn.Term, elector.Time) { return m.state.Term, m.state.LeaseEnd }

// Step tells the machine that in happened at the given time, and returns what to do
// about it.
func (m *Machine) Step(now elector.Time, in Input) Effects {
	st := step{Machine: m}
	if s := &st.state; s.Phase >= Serving {
		st.eff.Holder = s.ID
		st.eff.Deadline = s.Deadline
	}
	switch in := in.(type) {
	case Campaign:
		st.campaign(now, in)
	case GiveUp:
		st.expire(now) // if the lease has ended, that is why
		if st.state.Phase == Serving && st.state.ID == in.ID {
			st.stop(elector.Resigned, elector.Never)
		}
	case Release:
		if st.state.Phase != Idle && st.state.ID == in.ID {
			st.release(now)
			st.request(elector.Resign{Rest: in.Rest})
		}
	case Resign:
		st.resign()
	case Fitness:
		st.state.Unfit = in.Unfit
	case Candidacy:
		st.state.MayStand, st.state.Stood = in.MayStand, st.state.Stood || in.MayStand
	case Prefer:
		st.state.Priority = in.Priority
		st.request(elector.Prefer{Priority: in.Priority})
	case Close:
		st.close(now, in.Abrupt)
	case Lease:
		st.lease(now, in)
	case StopWork:
		st.stop(in.Why, in.By)
	case Lost:
		st.lost(now, in.Why)
	}
	st.expire(now)
	st.updateEligible()
	st.eff.Wake = st.wake()
	return st.eff
}

// campaign begins a campaign. It is granted only after the elector has answered what is
// requested here: the elector alone knows whether it is about to hand over.
func (m *step) campaign(now elector.Time, in Campaign) {
	s := &m.state
	refusal := NotRefused
	switch {
	case s.Closed:
		refusal = Closed
	case s.Phase == Waiting, s.Phase == Serving, s.Phase != Idle && s.ID != in.After:
		refusal = Busy
	case !s.Stood:
		refusal = NotCandidate
	case s.Resigned:
		refusal = Resigned
	}
	if refusal != NotRefused {
		m.eff.Refused, m.eff.Refusal = in.ID, refusal
		return
	}
	m.release(now)
	s.Phase, s.ID, s.OnDemand = Waiting, in.ID, true
	m.request(elector.Tick{})
}

// release ends what the present holder has.
func (m *step) release(now elector.Time) {
	s := &m.state
	m.stop(elector.Resigned, elector.Never)
	if s.Phase == Stopping {
		m.end(now)
	}
	s.Phase, s.ID, s.Resigned, s.Deadline = Idle, 0, false, 0
}

func (m *step) resign() {
	s := &m.state
	s.OnDemand = true
	if s.Phase == Waiting {
		m.refuse(Resigned)
	}
	s.Resigned = s.Phase != Idle
	m.request(elector.Resign{})
}

func (m *step) refuse(why Refusal) {
	m.eff.Refused, m.eff.Refusal = m.state.ID, why
	m.state.Phase, m.state.ID = Idle, 0
}

// close ends the election. Work that goes on keeps the elector from handing over.
func (m *step) close(now elector.Time, abrupt bool) {
	s := &m.state
	s.Closed = true
	if s.Phase == Waiting {
		m.refuse(Closed)
	}
	abrupt = abrupt && s.Phase.Working()
	if abrupt {
		m.stop(elector.Stopped, now.Add(m.spare))
	}
	m.request(elector.Stop{Abrupt: abrupt})
}

// lease notes how far the elector leads, and grants the campaign that waits if there is
// time for work.
func (m *step) lease(now elector.Time, in Lease) {
	s := &m.state
	s.Term, s.LeaseEnd = in.Term, in.End
	switch {
	case s.Phase == Serving:
		m.setDeadline(in.End)
	case s.Phase == Waiting && !in.Pending && !in.Handover && now.Add(m.margin) < in.End:
		s.Phase = Serving
		m.eff.Granted, m.eff.Holder = s.ID, s.ID
		m.setDeadline(in.End)
		m.request(elector.Guard{Held: true})
	}
}

// lost ends work that was not told to stop before, at once. Work that was told has until
// its deadline, unless it has none.
func (m *step) lost(now elector.Time, why elector.Reason) {
	s := &m.state
	s.Term, s.LeaseEnd = 0, 0
	if s.Phase == Serving || s.Phase == Stopping && s.Deadline == elector.Never {
		m.stop(why, now)
		m.end(now)
	}
}

// expire tells the work to stop when its lease is about to end, and ends it at its
// deadline: it can do so however late the elector learns of it.
func (m *step) expire(now elector.Time) {
	s := &m.state
	if s.Phase == Serving && now >= s.Deadline.Add(-m.margin) {
		m.stop(elector.LeaseExpired, elector.Never)
	}
	if s.Phase == Stopping && now >= s.Deadline {
		m.end(now)
		m.eff.Overdue = true
	}
}

// stop tells the work to stop by its deadline, and that by the given time at the latest.
func (m *step) stop(why elector.Reason, by elector.Time) {
	s := &m.state
	if !s.Phase.Working() {
		return
	}
	if s.Phase == Serving {
		s.Phase = Stopping
		m.eff.Stop = why
	}
	m.setDeadline(min(s.Deadline, by))
}

// end ends the leadership: the elector waits for its work no longer.
func (m *step) end(now elector.Time) {
	m.state.Phase = Overdue
	m.setDeadline(min(m.state.Deadline, now))
	m.eff.Over = true
	m.request(elector.Guard{})
}

func (m *step) setDeadline(at elector.Time) {
	m.state.Deadline, m.eff.Deadline = at, at
}

// updateEligible tells the elector whether this node is to stand. A node whose work goes
// on although it should have stopped must not stand.
func (m *step) updateEligible() {
	s := &m.state
	if able := s.MayStand && s.Wanted() && s.Unfit == "" && s.Phase != Overdue; able != s.Able {
		s.Able = able
		m.request(elector.Eligible{Able: able})
	}
}

func (m *step) request(in elector.Input) { m.eff.Requests = append(m.eff.Requests, in) }

func (m *step) wake() elector.Time {
	switch s := &m.state; {
	case s.Phase == Serving && s.Deadline != elector.Never:
		return s.Deadline.Add(-m.margin)
	case s.Phase == Stopping:
		return s.Deadline
	}
	return elector.Never
}

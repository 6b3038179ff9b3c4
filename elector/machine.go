package elector

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Machine is one node's part in one election.
type Machine struct {
	cfg     *resolved
	set     *electorate
	state   state
	held    *[]Envelope // wait until the term that they speak for is durable; nil for none
	watch   *watch      // of the leader that is followed, or was followed last
	quality *quality    // nil without Config.QoS
	eff     *Effects    // of the running step; machines of one goroutine may share the memory
	random  uint64      // entropy of the running step

	crowded  bool // see SetCrowded
	followed bool // the newest step heard a heartbeat of the leader, and promised if it has a vote
}

// resolved is a Config in the form that the machine works with; it never changes.
type resolved struct {
	Config
	configured electorate // counts in an election without a record
	bounds     Bounds
	counts     watch // of all leaders, if the miss count judges them
}

// New returns a DORMANT machine; step it with Start. It returns a *ConfigError
// that names every violated rule if cfg is not valid.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Voters = slices.Sorted(slices.Values(cfg.Voters))
	bounds := DefaultBounds()
	if cfg.Bounds != nil {
		bounds = *cfg.Bounds
	}
	r := &resolved{Config: cfg, bounds: bounds,
		counts: watch{Detector: detector.MissCount(cfg.Timing.HeartbeatMissCount)}}
	r.configured = r.electorate(cfg.Voters, make([]Identity, len(cfg.Voters)))
	return (&Machine{cfg: r, eff: &Effects{}}).Another(cfg.Priority), nil
}

// Another returns a DORMANT machine of the same configuration, but for its priority. The two share
// the memory of their effects: those of one are valid until the next Step of either.
func (m *Machine) Another(priority int) *Machine {
	a := &Machine{cfg: m.cfg, set: &m.cfg.configured, watch: &m.cfg.counts, eff: m.eff}
	a.state = state{Rare: &nobody.Rare, Record: &nobody.Record, Refused: &nobody.Refused}
	a.state.part(0)
	a.state.Priority = priority
	if m.cfg.asksQuality() {
		a.quality = &quality{}
	}
	return a
}

// Step tells the machine that in happened at now, a reading of the node's monotonic
// clock: positive, and never earlier than in the step before. Entropy is a uniformly
// random word; it is read if the step draws a back-off or opens a round. The slices
// of the effects are valid until the next Step.
func (m *Machine) Step(now Time, entropy uint64, in Input) Effects {
	m.eff.reset()
	m.state.Now = max(now, m.state.Now, 1)
	m.random, m.followed = entropy, false
	if in, ok := in.(Backed); ok {
		m.backed(in) // it came before the lease ended
	}
	// A leader that slept past its lease finds out before it does anything else.
	m.checkLease()
	switch in := in.(type) {
	case Start:
		m.start(in)
	case Received:
		m.receive(in.From, in.Identity, &in.Message)
	case LinkUp:
		m.linkUp(in.Peer)
	case LinkDown:
		m.linkDown(in.Peer)
	case Died:
		m.died(in.Peer)
	case Measured:
		m.state.Turns.RoundTrip = in.RoundTrip
	case HeldUp:
		m.heldUp(in.For)
	case Tuned:
		m.tuned(in)
	case Persisted:
		m.persisted(in.Term, in.Record)
	case Issued:
		m.issued(in.LSN)
	case Carry, Lose, Covered:
		m.paired(in)
	case Publish, ChangeVoters, Confirm:
		m.asked(in)
	case Eligible:
		m.eligible(in.Able)
	case Prepared:
		m.prepared(in.Ready)
	case Prefer:
		m.state.Priority = in.Priority
	case Guard:
		m.guard(in.Held)
	case Transfer:
		m.transfer(in.To)
	case Resign:
		m.resign(in.Rest)
	case Pause:
		m.pause(in.For)
	case Stop:
		m.stop(in.Abrupt)
	}
	m.expire()
	if m.state.Leaving && m.state.Role != Leader {
		m.leave() // a Stop waited for guarded work, and the leadership ended first
	}
	m.tellNews()
	m.state.trim()
	m.eff.Wake = m.nextDeadline()
	return *m.eff
}

// asked acts on what an application asks of a leader.
func (m *Machine) asked(in Input) {
	switch in := in.(type) {
	case Publish:
		m.publish(in.Value)
	case ChangeVoters:
		m.changeVoters(in)
	case Confirm:
		m.confirm()
	}
}

// start begins taking part as a FOLLOWER that looks for an existing leader first.
func (m *Machine) start(in Start) {
	s := &m.state
	if s.Role != Dormant {
		return
	}
	s.Term, s.Durable, s.Vote = in.Term, max(in.Term, in.Reserved), ""
	s.Asked, s.Floor, s.Turns.LedLast = s.Durable, 0, in.Led
	if in.Reserved > in.Term {
		s.Floor = in.Reserved
	}
	m.startRecord(in.Record)
	if m.set.mayVote { // §3.1: an observer above the voters' terms would follow nobody
		m.enterTerm(in.Min)
	}
	if s.Term > 0 { // a node that was in no term yet has no vote to protect
		m.reserve()
	}
	// §3.3: a single voter has nobody to discover or to have promised anything to. But with a
	// record it may have voted in a larger set, of which its own disk does not know: §15.9.
	if !m.alone() || m.hasRecord() {
		// §3.1: by then every promise that it may have made before a crash has ended. A first
		// boot is no exception, because the node may have lost its disk.
		s.EmbargoEnd = s.Now.Add(m.cfg.Timing.Promise())
	}
	m.become(Follower, Started, "")
	if m.alone() {
		m.stand()
		return
	}
	s.seek().StandAt = s.Now.Add(m.cfg.Timing.InitialWait) // §3.2
	s.seek().Discovering = true
}

// issued notes the newest LSN that the application issued as leader.
func (m *Machine) issued(n lsn.LSN) {
	s := &m.state
	if s.Role == Leader && n.Term == s.Leader.Term && n.Compare(s.SeenLSN) > 0 {
		s.SeenLSN = n
	}
}

// expire acts on every deadline that has come.
func (m *Machine) expire() {
	s := &m.state
	for _, end := range [...]*Time{&s.RestEnd, &s.PauseEnd} {
		if s.Role != Dormant && due(*end, s.Now) {
			*end = 0
			m.ableAgain()
		}
	}
	switch s.Role {
	case Follower:
		if due(s.Follower.SilentAt, s.Now) {
			m.leaderSilent()
		}
		if due(s.Seek.RoundEnd, s.Now) {
			m.scoutingFailed()
		}
		switch {
		case !due(s.Seek.StandAt, s.Now):
		case s.Seek.Discovering:
			m.backOff()
		default:
			m.stand()
		}
	case Candidate:
		switch {
		case due(s.Candidate.End, s.Now):
			m.electionFailed()
		case due(s.Candidate.ProposeAt, s.Now):
			m.proposeToAll()
		}
	case Leader:
		m.checkLease()
		if s.Role == Leader && due(s.Leader.Handover.End, s.Now) {
			m.handoverExpired()
		}
		confirms := due(s.Leader.Confirm.Round, s.Now)
		if confirms {
			s.Leader.Confirm.Round = 0
		}
		switch {
		case s.Role != Leader:
		case due(s.Leader.BroadcastAt, s.Now):
			m.considerHandover()
			m.advance()
			m.heartbeatAll()
			if s.Leader.Reaffirm.Sent {
				m.proposeToAll()
			}
		case confirms:
			m.heartbeat(AllMembers, 0)
		}
	}
}

// due reports whether an armed deadline has come.
func due(at, now Time) bool { return at != 0 && at <= now }

// nextDeadline is when expire has something to do again.
func (m *Machine) nextDeadline() Time {
	s := &m.state
	if s.Role == Dormant {
		return Never
	}
	f, k, c, l := s.Follower, s.Seek, s.Candidate, s.Leader // all zero unless this is the role
	lease, stand, settles := l.LeaseEnd, k.StandAt, Time(0)
	if s.Role == Leader {
		settles = m.settlesAt()
	}
	if m.crowded && m.IsAboutToStand(s.Now) {
		stand = 0
	}
	if l.Covered && l.BroadcastAt == 0 {
		lease = 0 // the driver watches it
	}
	return Time(min(armed(s.RestEnd), armed(s.PauseEnd), armed(f.SilentAt), armed(k.RoundEnd),
		armed(stand), armed(f.SayAt), armed(c.ProposeAt), armed(c.End), armed(l.BroadcastAt),
		armed(lease), armed(settles), armed(l.Handover.End), armed(l.Confirm.Round), armed(Never)) + 1)
}

// armed orders deadlines: 0, which is not armed, after all others.
func armed(at Time) uint64 { return uint64(at) - 1 }

// voter returns the index of a voter, and whether id is one. A linear search is the fastest: voters
// are few, and each message needs it several times.
func (m *Machine) voter(id NodeID) (int, bool) {
	i := slices.Index(m.set.voters, id)
	return i, i >= 0
}

// draw returns the next random word of this step. A step may draw more than once; the
// finaliser of splitmix64 spreads the one word that came in.
func (m *Machine) draw() uint64 {
	m.random += 0x9e3779b97f4a7c15
	z := m.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

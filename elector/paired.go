package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// Pairing says for whom beats of a pair may speak in an election: §16.1.
type Pairing struct {
	Leader   NodeID   // that this node follows; "" if beats may not speak for it
	Term     lsn.Term // of that leadership
	Observes bool     // this node has no vote, so it promises nothing
}

// Pairing returns for whom beats may speak. Fresh is whether the node heard the leader in the very
// step before, and so promised and acknowledged: only then it may join the followed set. The set
// of a new session would otherwise hold a promise that is older than beats which were answered in
// it. The node leaves the set when it stops to follow (§16.2), not when a promise ends because
// beats are late: the next one is a promise again.
func (m *Machine) Pairing() (p Pairing, fresh bool) {
	s := &m.state
	f := s.Follower // no leader unless FOLLOWER
	switch {
	case f.Leader == "" || f.Lacks && !m.set.mayVote: // heartbeats remind it to ask for the record
		return Pairing{}, false
	case !m.set.mayVote:
		return Pairing{f.Leader, f.LeaderTerm, true}, m.followed
	case s.Promise.To != f.Leader || f.LeaderTerm > s.Durable || m.mayHaveMoved(f.LeaderTerm):
		return Pairing{}, false
	}
	return Pairing{f.Leader, f.LeaderTerm, false}, m.followed
}

// Quiet reports whether this leader leaves the end of its lease to the driver: see Covered.
func (m *Machine) Quiet() bool {
	l := m.state.Leader // zero unless LEADER
	return l.Covered && l.BroadcastAt == 0
}

// Wanted is the longest period of heartbeats or beats that this node needs of the leader that it
// follows (Config.QoS); 0 for any.
func (m *Machine) Wanted() time.Duration {
	if f := m.state.Follower; f.Leader != "" {
		return m.wantedPeriod(f.Leader)
	}
	return 0
}

// paired acts on what beats of a pair say; for a leader's acknowledged ones see backed.
func (m *Machine) paired(in Input) {
	switch in := in.(type) {
	case Carry:
		m.carry(in)
	case Lose:
		m.lose(in)
	case Covered:
		if m.state.Role == Leader {
			m.state.Leader.Covered = in.All
		}
	}
}

// carry extends the promise to the leader by a beat, and leaves its silence to the pair's detector.
func (m *Machine) carry(in Carry) {
	s := &m.state
	f, p := s.Follower, &s.Promise
	if f.Leader != in.Peer || f.LeaderTerm != in.Term {
		return
	}
	f.Carried, f.SilentAt = true, 0
	f.HeardAt = max(f.HeardAt, in.At)
	if m.set.mayVote && p.To == in.Peer && in.At != 0 {
		p.Until = max(p.Until, in.At.Add(m.cfg.Timing.Promise()))
	}
}

// uncarry lets this election watch its leader again.
func (m *Machine) uncarry(leader NodeID) {
	f := m.state.Follower
	if !f.Carried || f.Leader != leader {
		return
	}
	wait := m.cfg.Timing.Inactivity()
	if m.cfg.asksQuality() {
		wait = m.detection(leader, f.Period)
	}
	f.Carried, f.SilentAt = false, max(f.HeardAt.Add(wait), m.state.Now)
}

// lose gives up a leader that the pair's detector suspects, or that said that it does not lead in
// that term. The promise stays.
func (m *Machine) lose(in Lose) {
	f := m.state.Follower
	switch {
	case f.Leader != in.Peer:
	case in.Term == 0 && f.Carried:
		m.leaderSilent()
	case in.Term == f.LeaderTerm:
		m.unavailable(in.Peer)
	}
}

// backed counts acknowledged beats like acknowledged heartbeats: §16.4. One that was sent before
// this leadership is no anomaly.
func (m *Machine) backed(in Backed) {
	if m.state.Role != Leader {
		return
	}
	for _, b := range in.By {
		if voter, counts := m.genuine(b.Peer, b.Identity); counts && m.supported(voter, b.SentAt) {
			m.noteSettled(voter)
		}
	}
}

// Backs reports whether the word of a node on that data directory counts for the lease, so that a
// driver can count the lease of many elections at once: see LeaseFrom. It is true also for a lease
// without an end, which needs no word.
func (m *Machine) Backs(id NodeID, identity Identity) bool {
	_, counts := m.genuine(id, identity)
	return counts
}

// LeaseFrom is the end of the lease that acknowledgements back: the send times of the newest
// message that each of Electorate has acknowledged, 0 for none.
func (m *Machine) LeaseFrom(acks []Time) Time {
	var s support
	copy(s[:], acks)
	return m.leaseFrom(&s)
}

// SetCrowded says whether so many elections of this node try to get a leader that this one does not
// stand when it would: §16.10. IsAboutToStand is true then until a step after the crowd, of which
// no deadline reminds.
func (m *Machine) SetCrowded(crowded bool) { m.crowded = crowded }

// IsAboutToStand reports whether this node would stand for election if it were stepped at now.
func (m *Machine) IsAboutToStand(now Time) bool {
	k := m.state.Seek // zero unless FOLLOWER
	return !k.Discovering && due(k.StandAt, now)
}

// Attempts reports whether this node tries to get a leader: a scouting round is open, it is a
// candidate, or, for two heartbeat periods, a new leader for whom beats do not speak yet.
func (m *Machine) Attempts() bool {
	s := &m.state
	young := s.Leader.Since.Add(2 * m.cfg.Timing.HeartbeatBroadcast)
	return s.Role == Candidate || s.Seek.Round.IsOpen() ||
		s.Role == Leader && !s.Leader.Covered && s.Now < young && !m.alone()
}

// said is what an acknowledgement tells besides that the leader was heard.
type said struct {
	Priority int
	Period   time.Duration
	Record   lsn.LSN
	Entered  lsn.Term
	Short    bool // it reaches no quorum
	MayStand bool
	Cold     bool
}

// news returns what an acknowledgement would tell. How many voters this node reaches is no news as
// long as they are a quorum: whenever one came or went, all followers of very many leaders would
// tell that at once.
func (m *Machine) news(ack *Message) said {
	return said{ack.Priority, ack.Period, ack.Record, ack.Entered, int(ack.Reach) < m.set.quorum,
		ack.MayStand, ack.Cold}
}

// asserted is what a heartbeat tells besides that the leader lives.
type asserted struct {
	LSN, Record, Committed lsn.LSN
	Successor              NodeID
	Period                 time.Duration
	// Stored are those that had the record: who did not could not act on what is committed.
	Stored scouting.Voters
}

// tellNews sends what has changed for those to whom beats speak instead of heartbeats and
// acknowledgements, at most once a period: §16.7.
func (m *Machine) tellNews() {
	s := &m.state
	f, l := s.Follower, s.Leader
	switch {
	case s.Role == Leader && l.Covered && m.repeats(): // beats say it all
		l.BroadcastAt = 0
	case s.Role == Leader && l.BroadcastAt == 0:
		l.BroadcastAt = m.nextBroadcast()
	case !f.Carried || !m.set.mayVote || f.EchoedAt == 0: // it has just become a voter
		if f.SayAt != 0 { // it had news, and lost its vote, or the beats, before the news was due
			f.SayAt = 0
		}
	default:
		f.SayAt = 0
		ack := m.ackOf(f.Echoed, f.EchoedAt)
		switch again := f.SaidAt.Add(m.cfg.Timing.HeartbeatBroadcast); {
		case m.news(&ack) == f.Said:
		case s.Now < again:
			f.SayAt = again
		default:
			m.sendAck(&ack)
		}
	}
}

// ackOf returns the acknowledgement of a heartbeat of the leader that this node follows.
func (m *Machine) ackOf(sequence uint64, sentAt Time) Message {
	s := &m.state
	ack := Message{
		Kind: HeartbeatAck, Term: s.Follower.LeaderTerm, Sequence: sequence, SentAt: sentAt,
		LSN: s.SeenLSN, Priority: s.Priority, MayStand: m.mayStand(), Cold: s.Cold,
		Reach: uint8(m.reach()), Period: m.wantedPeriod(s.Follower.Leader),
	}
	m.acknowledge(&ack)
	return ack
}

func (m *Machine) sendAck(ack *Message) {
	f := m.state.Follower
	f.Said, f.SaidAt, f.Echoed, f.EchoedAt = m.news(ack), m.state.Now, ack.Sequence, ack.SentAt
	m.send(f.Leader, ack)
}

// repeats reports whether a broadcast would tell nothing but what all members were told already,
// and no answer to it is awaited.
func (m *Machine) repeats() bool {
	l, w := m.state.Leader, m.state.Writing
	switch {
	case l.Told != m.asserts(), l.Handover != (Handover{}), l.Reaffirm.Term != 0,
		l.Confirm.Asked != 0, l.Confirm.Round != 0, m.state.Unable, m.cfg.Takeover != 0,
		w.Change != (ChangeVoters{}), w.Begin || w.Bind, m.hasRecord() && !w.Committed:
		return false
	}
	return !m.hasRecord() || m.state.Linked&^w.Stored == 0
}

// settlesAt is when to look next whether the voters are settled (§9.6) that are to lead next,
// perhaps. It is not armed if all are.
func (m *Machine) settlesAt() (at Time) {
	s, l := &m.state, m.state.Leader
	unsettled := s.Linked.Without(m.set.self) &^ l.Settled & l.MayStand &^ l.LacksQuorum
	for i := range m.set.voters {
		if since := s.By[i].FitSince; unsettled.Has(i) && since != 0 {
			then := max(since.Add(m.cfg.Timing.Promise()), s.Now.Add(m.cfg.Timing.HeartbeatBroadcast))
			at = Time(min(armed(at), armed(then)) + 1)
		}
	}
	return at
}

// asserts returns what a heartbeat would tell now.
func (m *Machine) asserts() asserted {
	return asserted{
		LSN: m.state.SeenLSN, Record: m.newest(), Committed: m.state.Record.Shown.LSN,
		Successor: m.heir(), Period: m.state.Leader.Period, Stored: m.state.Writing.Stored,
	}
}

// noteSettled notes that a voter was fit for so long that it has surely not just started: §9.6.
func (m *Machine) noteSettled(voter int) {
	l, since := m.state.Leader, m.state.By[voter].FitSince
	if since != 0 && m.state.Now >= since.Add(m.cfg.Timing.Promise()) {
		l.Settled = l.Settled.With(voter)
	}
}

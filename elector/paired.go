package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// Pairable names the leader that this node follows, and the term of that leadership, if beats of
// their pair may speak for it: P1. A voter must have promised, and its acknowledgement must have
// left. The leader is "" if they may not.
func (m *Machine) Pairable() (leader NodeID, term lsn.Term, observes bool) {
	s := &m.state
	f := &s.Follower // no leader unless FOLLOWER
	switch {
	case f.Leader == "":
	case !m.set.mayVote:
		return f.Leader, f.LeaderTerm, true
	case m.promise().To == f.Leader && f.LeaderTerm <= s.Durable && !m.mayHaveMoved(f.LeaderTerm):
		return f.Leader, f.LeaderTerm, false
	}
	return "", 0, false
}

// carry extends the promise to the leader by a beat, and leaves its silence to the pair's detector.
func (m *Machine) carry(in Carry) {
	s := &m.state
	f, p := &s.Follower, &s.Promise
	if f.Leader != in.Peer || f.LeaderTerm != in.Term {
		return
	}
	f.Carried, f.SilentAt = true, 0
	f.HeardAt = max(f.HeardAt, in.At)
	if p.To == in.Peer && in.At != 0 {
		p.Until = max(p.Until, in.At.Add(m.cfg.Timing.Promise()))
	}
}

// uncarry lets this election watch its leader again.
func (m *Machine) uncarry(leader NodeID) {
	f := &m.state.Follower
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
	f := &m.state.Follower
	switch {
	case f.Leader != in.Peer:
	case in.Term == 0 && f.Carried:
		m.leaderSilent()
	case in.Term == f.LeaderTerm:
		m.unavailable(in.Peer)
	}
}

// backed counts an acknowledged beat like an acknowledged heartbeat: P4. One that was sent before
// this leadership is no anomaly.
func (m *Machine) backed(in Backed) {
	voter, counts := m.genuine(in.Peer, in.Identity)
	if m.state.Role != Leader || !counts || in.SentAt < m.state.Leader.Since {
		return
	}
	m.state.Linked = m.state.Linked.With(voter)
	m.supported(voter, in.SentAt)
	m.noteSettled(voter)
}

// Backers are the voters that a pair may carry for this leader, and Quorum how many of all voters
// must back its lease, itself included: for a driver that counts the lease of many elections at
// once. It is none if the lease is not counted so: with a record identities count, and a lease
// without an end needs no support.
func (m *Machine) Backers() (voters []NodeID, quorum int) {
	if m.state.Role != Leader || m.hasRecord() || m.state.Leader.LeaseEnd == Never {
		return nil, 0
	}
	return m.set.voters, m.set.quorum
}

// LeaseFrom is the end of the lease of an election like this one that acknowledgements back. acks
// has for each voter the send time of the newest message that it has acknowledged, and Never for
// this node. The order of acks does not matter, and changes.
func (m *Machine) LeaseFrom(acks []Time) Time {
	var s support
	copy(s[:], acks)
	return s.quorumAt(m.set.self, len(acks), m.set.quorum).Add(m.cfg.Timing.Lease)
}

// said is what an acknowledgement tells besides that the leader was heard.
type said struct {
	Priority int
	Period   time.Duration
	Record   lsn.LSN
	Entered  lsn.Term
	Reach    uint8
	MayStand bool
	Cold     bool
}

// news returns what this follower would tell now.
func (msg *Message) news() said {
	return said{msg.Priority, msg.Period, msg.Record, msg.Entered, msg.Reach, msg.MayStand, msg.Cold}
}

// asserted is what a heartbeat tells besides that the leader lives.
type asserted struct {
	LSN, Record, Committed lsn.LSN
	Successor              NodeID
	Period                 time.Duration
}

// tellNews sends what has changed for those to whom beats speak instead of heartbeats and
// acknowledgements, at most once a period: P7.
func (m *Machine) tellNews() {
	s := &m.state
	f, l := &s.Follower, &s.Leader
	switch {
	case s.Role == Leader && m.quiet():
		l.BroadcastAt = 0
	case s.Role == Leader && l.BroadcastAt == 0:
		l.BroadcastAt = m.nextBroadcast()
	case !f.Carried || !m.set.mayVote:
	default:
		f.SayAt = 0
		ack := m.ackOf(f.Echoed, f.EchoedAt)
		switch again := f.SaidAt.Add(m.cfg.Timing.HeartbeatBroadcast); {
		case ack.news() == f.Said:
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
	f := &m.state.Follower
	f.Said, f.SaidAt, f.Echoed, f.EchoedAt = ack.news(), m.state.Now, ack.Sequence, ack.SentAt
	m.send(f.Leader, ack)
}

// quiet reports whether beats say all that this leader's heartbeats would say.
func (m *Machine) quiet() bool { return m.state.Leader.Covered && m.repeats() }

// repeats reports whether a broadcast would tell nothing but what all members were told already,
// and no answer to it is awaited.
func (m *Machine) repeats() bool {
	l, w := &m.state.Leader, &m.state.Leader.Writing
	switch {
	case l.Told != m.asserts(), l.Handover != (Handover{}), l.Reaffirm.Term != 0,
		l.Confirm.Asked != 0, l.Confirm.Round != 0, m.state.Unable, m.cfg.Takeover != 0,
		w.Change != (ChangeVoters{}), w.Begin || w.Bind, m.hasRecord() && !w.Committed:
		return false
	}
	unsettled := m.state.Linked.Without(m.set.self) &^ l.Settled & l.MayStand
	return unsettled&^l.LacksQuorum == 0 && (!m.hasRecord() || m.state.Linked&^w.Stored == 0)
}

// asserts returns what a heartbeat would tell now.
func (m *Machine) asserts() asserted {
	return asserted{
		LSN: m.state.SeenLSN, Record: m.newest(), Committed: m.state.Record.Shown.LSN,
		Successor: m.heir(), Period: m.state.Leader.Period,
	}
}

// noteSettled notes that a voter was fit for so long that it has surely not just started: §9.6.
func (m *Machine) noteSettled(voter int) {
	l := &m.state.Leader
	if since := l.FitSince[voter]; since != 0 && m.state.Now >= since.Add(m.cfg.Timing.Promise()) {
		l.Settled = l.Settled.With(voter)
	}
}

package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// State is everything that a machine remembers between steps, except for the messages that wait
// for the disk. It is comparable and copied by assignment. What belongs to a role is in that
// role's part, which is zero in all other roles.
type State struct {
	Common
	Rare
	Record   recordState
	Refused  question
	Follower struct {
		followerState
		seekState
	}
	Candidate candidateState
	Leader    struct {
		leaderState
		Writing writing
	}
	By [scouting.MaxVoters]voterState // zero unless CANDIDATE or LEADER
}

// Common is the part of a State that does not depend on the role.
type Common struct {
	Now Time

	Term        lsn.Term // highest voted in, proposed or followed; never goes down
	Durable     lsn.Term // highest term known to be reserved on disk
	Asked       lsn.Term // highest term that it asked the disk to reserve
	Floor       lsn.Term // it may have voted up to this term before a crash; 0 if it knows its votes
	RefusedTerm lsn.Term // highest term heard of in a refusal: the floor of the next round
	Vote        NodeID   // whom this node voted for in Term, itself included; "" if none or unknown
	SeenLSN     lsn.LSN  // newest LSN issued (leader) or heard of

	Turns      turns
	Promise    promise
	Ceded      scouting.Voters // gave up Term: it follows no heartbeat of theirs in that term
	Linked     scouting.Voters // those to which a link is up
	EmbargoEnd Time            // a voter that has just started supports nobody before; 0 for none
	// HeldUntil is until when it gives up nobody for silence, because it was held up: §7.12.
	HeldUntil Time
	Priority  int // Config.Priority, or what replaced it

	Role     Role
	Unable   bool // the application cannot lead here
	Prepares bool // it is prepared before it leads ...
	Cold     bool // ... and is not yet
	Leaving  bool // LEADER told to stop: it leaves when it leads no more
}

// Rare is the part of a State that is zero most of the time, whatever the role.
type Rare struct {
	Climb    climb
	CededOut NodeID // the newest node without a vote that gave up Term, as the voters in Ceded did
	Tuned    Tuned  // of the newest leader; zero for none
	RestEnd  Time   // until when it does not stand; 0 for no rest
	// PauseEnd is the end of the pause, in which leadership stays where it is; 0 for none.
	PauseEnd Time
	Takeover attempts
}

// promise binds the node to vote for nobody except To before Until. The zero promise binds
// nothing.
type promise struct {
	To    NodeID
	Term  lsn.Term
	Until Time
}

// attempts are what this node remembers of its attempts to give leadership to a
// preferred voter (Config.Takeover), over all its leaderships.
type attempts struct {
	At     Time   // of the last attempt
	To     NodeID // for whom it stepped down, until that node is heard to lead; "" for none
	Failed uint8  // in a row: it stepped down, and the target was not heard to lead
}

// followerState is what only a FOLLOWER has. A deadline of 0 is not armed.
type followerState struct {
	Leader        NodeID        // whose heartbeats it follows; "" for none
	LeaderTerm    lsn.Term      // the term of the newest heartbeat of that leader
	HeardAt       Time          // when it came
	Period        time.Duration // that it announced; 0 by an older build
	AwaitedLeader NodeID        // whom it voted for and has not heard a heartbeat from yet
	SilentAt      Time          // when the leader, or without one the awaited one, is given up
	Carried       bool          // beats speak for the leader, and the pair's detector watches it: §16
	Lacks         bool          // the newest heartbeat named a newer record than it had then

	Said     said   // in the newest acknowledgement to the leader
	SaidAt   Time   // when that was sent
	SayAt    Time   // when the next one is due, with news for a leader whose pair carries; 0: never
	Echoed   uint64 // sequence of the heartbeat that the newest acknowledgement echoed ...
	EchoedAt Time   // ... and when its leader sent that
}

// seekState is what only a FOLLOWER has that looks for a leader.
type seekState struct {
	HintedLeader NodeID // known from a refusal only; never followed
	HintedTerm   lsn.Term

	StandAt        Time   // when to stand for election, if nothing prevents it by then
	Discovering    bool   // StandAt is the end of the initial wait; a random wait follows
	Postponed      bool   // StandAt follows from when a promise or the embargo ends
	Ahead          NodeID // the named successor that StandAt lets go first; "" for none
	SuccessorUntil Time   // named successor: back-offs are short before this

	Round    scouting.Round
	RoundEnd Time

	LeaderDied bool            // the leader that it followed last is proven dead: §3.15
	Unaware    scouting.Voters // in the open round: whose no may become a yes: §3.15
}

// candidateState is what only a CANDIDATE has.
type candidateState struct {
	Ballot    ballot
	Began     Time // when the term began to be written
	ProposeAt Time // when the proposal is repeated; 0 before the first
	End       Time // when the election has failed; 0 before the first proposal
}

// leaderState is what only a LEADER has.
type leaderState struct {
	Term        lsn.Term // the term that it leads in; below State.Term while it re-affirms
	Since       Time     // send time of the proposal that elected it: no echo is older
	Sequence    uint64   // of the newest broadcast
	BroadcastAt Time
	Period      time.Duration // of the broadcasts
	SlowSince   Time          // since when a longer one would do; 0: it would not
	LeaseEnd    Time
	Told        asserted        // in the newest heartbeat to all
	MayStand    scouting.Voters // whose newest ack said that it may stand
	Cold        scouting.Voters // whose newest ack said that it is not prepared
	LacksQuorum scouting.Voters // whose newest ack said that it reaches no quorum
	Settled     scouting.Voters // voters whose embargo after a start is over: §9.6
	Covered     bool            // beats speak for this leader to all members: §16
	Working     bool            // the application's guarded work is held
	RaisedAt    Time            // when it last raised its term to re-affirm itself; 0: never
	Reaffirm    ballot          // the proposal of a higher term; zero if none is open
	Handover    Handover
	Confirm     confirming
}

// voterState is what a CANDIDATE or LEADER knows of one voter.
type voterState struct {
	Support  Time          // when the newest proposal or heartbeat was sent that it acked; 0 for none
	Echo     Time          // the same of heartbeats alone, in which beats have no say
	Wanted   time.Duration // the period of its newest ack; 0 for none
	FitSince Time          // since when it is fit without a break; 0 if it is not
	Met      Identity      // that it has shown, while the record lacks it
	Priority int32         // from its newest ack; saturated
}

// ballot is the tally of one proposal. The zero ballot is closed.
type ballot struct {
	Term    lsn.Term
	Sent    bool // answers count; it is not sent before the term is durable
	SentAt  Time // when it was first sent
	Yes, No scouting.Voters
}

// become is the one place where the role changes. It clears what belonged to the old
// role. A new leader leads in the term of its ballot.
func (m *Machine) become(r Role, why Reason, peer NodeID) {
	s := &m.state
	from, elected := s.Role, s.Candidate.Ballot.Term
	s.Role = r
	s.part(len(m.set.voters))
	if r == Leader {
		s.Leader.Term = elected
	}
	m.transition(from, why, peer)
}

// transition reports a change, as the state now stands.
func (m *Machine) transition(from Role, why Reason, peer NodeID) {
	m.eff.Transitions = append(m.eff.Transitions, Transition{
		From: from, To: m.state.Role, Reason: why,
		Term: m.leadershipTerm(), Leader: m.Leader(), Peer: peer,
	})
}

// enterTerm is the one place where the term rises. Votes and cessions belong to their
// term, so this is also the one place that forgets them.
func (m *Machine) enterTerm(t lsn.Term) {
	if t <= m.state.Term {
		return
	}
	m.state.Term = t
	m.state.Vote, m.state.Ceded = "", 0
	if m.state.CededOut != "" {
		m.state.rare().CededOut = ""
	}
	m.reserve()
}

// Leader is the leader that this node is or follows; "" for none.
func (m *Machine) Leader() NodeID {
	if m.state.Role == Leader {
		return m.cfg.Self
	}
	return m.state.Follower.Leader // "" unless FOLLOWER
}

// leadershipTerm is the term of the perceived leader, or without one the node's own.
func (m *Machine) leadershipTerm() lsn.Term {
	switch {
	case m.state.Role == Leader:
		return m.state.Leader.Term
	case m.state.Follower.Leader != "":
		return m.state.Follower.LeaderTerm
	}
	return m.state.Term
}

// Status is a snapshot of a machine for people and programs. A Time of 0 means
// "none"; times are readings of the node's own clock.
type Status struct {
	Role   Role
	Term   lsn.Term // of the leadership that the node holds or follows; without one its own
	Leader NodeID   // the leader that it is or follows; "" for none
	// HintedLeader is a leader that the node knows only from another node's
	// refusal; it does not follow it. "" for none.
	HintedLeader  NodeID
	AwaitedLeader NodeID  // whom it voted for and has not heard a heartbeat from yet
	LSN           lsn.LSN // newest issued (leader) or heard of
	LeaseEnd      Time    // leader: its lease is valid before this; Never if it needs none
	HeardAt       Time    // follower: when the leader's newest heartbeat came
	// Period is that of the heartbeats: this leader's, or as the leader that is followed
	// announces; 0 for none, and for a leader of an older build.
	Period time.Duration
	// Wanted is, for a leader, the shortest period that a follower needs, and otherwise what
	// this node needs of the leader that it follows (Config.QoS); 0 for none.
	Wanted      time.Duration
	PromisedTo  NodeID   // holder of the outstanding promise; "" for none
	PromiseEnd  Time     // when that promise ends
	EmbargoEnd  Time     // until when a voter that has just started supports nobody
	Scouting    bool     // a scouting round is open
	StandAt     Time     // when it intends to stand for election
	Supporters  []NodeID // leader: the voters whose acks back its lease, itself included; sorted
	Linked      []NodeID // voters to which a link is up; sorted
	Quorum      int      // voters needed
	Able        bool     // the node may stand for election, as its acks say
	Cold        bool     // its application is not prepared to lead: see Prepared
	Successor   NodeID   // whom the leader names ahead; "" for none or unknown
	RestEnd     Time     // it does not stand before: Resign told it so
	Handover    Handover // leader: the handover that is under way
	Writing     bool     // its term is not on disk yet; a candidate has not proposed itself yet
	NoTermsLeft bool     // its term is the last there is: it can never be elected again
}

// Status returns a snapshot as of the last step.
func (m *Machine) Status() Status {
	s := &m.state
	p := m.promise()
	st := Status{
		Role: s.Role, Term: m.leadershipTerm(), Leader: m.Leader(),
		HintedLeader: s.Seek.HintedLeader, AwaitedLeader: s.Follower.AwaitedLeader,
		LSN: s.SeenLSN, LeaseEnd: s.Leader.LeaseEnd, HeardAt: s.Follower.HeardAt,
		PromisedTo: p.To, PromiseEnd: p.Until,
		Scouting: s.Seek.Round.IsOpen(), StandAt: s.Seek.StandAt,
		Linked: m.names(s.Linked.Has), Quorum: min(m.set.quorum, len(m.set.voters)),
		Able: m.mayStand(), Cold: s.Cold, Successor: s.Turns.Heir,
		RestEnd: s.RestEnd, Handover: s.Leader.Handover,
		Writing: s.Term > s.Durable, NoTermsLeft: m.floor() >= lsn.MaxTerm,
	}
	switch {
	case s.Role == Leader:
		st.Period, st.Wanted = s.Leader.Period, m.fastest()
	case st.Leader != "":
		st.Period, st.Wanted = s.Follower.Period, m.wantedPeriod(st.Leader)
	}
	if s.EmbargoEnd > s.Now {
		st.EmbargoEnd = s.EmbargoEnd
	}
	if s.Role == Leader {
		st.Supporters, st.Successor = m.names(m.supports), m.heir()
	}
	return st
}

// Brief is the part of Status that takes no memory, for those who look at very many machines.
type Brief struct {
	Role   Role
	Term   lsn.Term
	Leader NodeID
	Quorum int
}

// Brief returns the part of Status, as of the last step.
func (m *Machine) Brief() Brief {
	return Brief{m.state.Role, m.leadershipTerm(), m.Leader(),
		min(m.set.quorum, len(m.set.voters))}
}

// names returns the voters that satisfy has, sorted.
func (m *Machine) names(has func(voter int) bool) []NodeID {
	var ids []NodeID
	for i, id := range m.set.voters {
		if has(i) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Lease is what one must know to tell whether a leadership is valid at a given
// moment. The zero Lease never is.
type Lease struct {
	Term lsn.Term
	End  Time // valid before this reading of the node's clock
}

// Lease returns this node's lease as of the last step, without allocation. The
// zero Lease if it does not lead.
func (m *Machine) Lease() Lease {
	return Lease{Term: m.state.Leader.Term, End: m.state.Leader.LeaseEnd} // zero unless LEADER
}

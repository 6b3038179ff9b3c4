package elector

import (
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// State is everything that a machine remembers between steps, messages held
// back for the disk aside. It is comparable and copied by assignment. What
// belongs to a role lives in that role's part, which is zero in any other role.
type State struct {
	Now  Time
	Role Role

	Term    lsn.Term // highest voted in, proposed or followed; never goes down
	Durable lsn.Term // highest term known to be on disk
	Learnt  lsn.Term // highest term heard of in a refusal: the floor of the next round
	Vote    NodeID   // whom this node voted for in Term, itself included; "" if none or unknown
	SeenLSN lsn.LSN  // newest LSN issued (leader) or heard of

	Promise    Promise
	Ceded      Voters // voters that gave up Term: no heartbeat of theirs in it is followed any more
	EmbargoEnd Time   // a voter that has just started supports nobody before; 0 for none
	Linked     Voters // voters to which a link is up

	Unable  bool // the application cannot lead here
	RestEnd Time // it does not stand before; 0 for no rest
	Leaving bool // LEADER told to stop: it leaves when it leads no more

	Takeover Takeover

	Follower  FollowerState
	Candidate CandidateState
	Leader    LeaderState
}

// Voters is a set of voters by index in the sorted voter list.
type Voters = scouting.Voters

// Promise binds the node to vote for nobody but To before Until. The zero
// Promise binds nothing.
type Promise struct {
	To    NodeID
	Term  lsn.Term
	Until Time
}

// Takeover is what this node remembers of its attempts to give leadership to a
// preferred voter (Config.Takeover), over all its leaderships.
type Takeover struct {
	At     Time   // of the last attempt
	To     NodeID // for whom it stepped down, until that node is heard to lead; "" for none
	Failed uint8  // attempts in a row for which it stepped down and the target was not heard to lead
}

// FollowerState is what only a FOLLOWER has. A deadline of 0 is not armed.
type FollowerState struct {
	Leader     NodeID   // whose heartbeats it follows; "" for none
	LeaderTerm lsn.Term // the term of the newest heartbeat of that leader
	HeardAt    Time     // when it came
	Tentative  NodeID   // whom it voted for and has not heard a heartbeat from yet
	SilentAt   Time     // when the leader, or else the tentative, is given up

	IndirectLeader NodeID // known from a refusal only; never followed
	IndirectTerm   lsn.Term

	StandAt        Time // when to stand for election, unless something hinders it then
	Discovering    bool // StandAt is the end of the initial wait; a random wait follows
	Postponed      bool // StandAt is when a promise or the embargo ends
	SuccessorUntil Time // named successor: back-offs are short before this

	Round    scouting.Round
	RoundEnd Time
}

// CandidateState is what only a CANDIDATE has.
type CandidateState struct {
	Ballot    Ballot
	Began     Time // when the term began to be written
	ProposeAt Time // when the proposal is repeated; 0 before the first
	End       Time // when the election has failed; 0 before the first proposal
}

// LeaderState is what only a LEADER has.
type LeaderState struct {
	Term        lsn.Term // the term that it leads in; below State.Term while it re-affirms
	Since       Time     // send time of the proposal that elected it: no echo is older
	Sequence    uint64   // of the newest heartbeat
	BroadcastAt Time
	LeaseEnd    Time
	Support     Support
	Fit         Voters                    // whose newest ack said that it may stand
	Short       Voters                    // whose newest ack said that it reaches no quorum
	Priority    [scouting.MaxVoters]int32 // by voter, from its newest ack; saturated
	Reaffirm    Ballot                    // the proposal of a higher term; zero if none is open
	RaisedAt    Time                      // when it raised its term to re-affirm itself; 0 for never
	FitSince    [scouting.MaxVoters]Time  // by voter, since when it is fit without a break; 0 if not
	Working     bool                      // the application's guarded work is held
	Handover    Handover
}

// Ballot is the tally of one proposal. The zero Ballot is not open.
type Ballot struct {
	Term    lsn.Term
	Sent    bool // answers count; it is not sent before the term is durable
	SentAt  Time // when it was first sent
	Yes, No Voters
	Support Support // of a CANDIDATE; a LEADER's votes go to its own
}

// become is the one place where the role changes. It clears what belonged to
// the old role.
func (m *Machine) become(r Role, why Reason, peer NodeID) {
	s := &m.state
	from := s.Role
	s.Role = r
	s.Follower, s.Candidate, s.Leader = FollowerState{}, CandidateState{}, LeaderState{}
	m.transition(from, why, peer)
}

// transition reports a change, as the state now stands.
func (m *Machine) transition(from Role, why Reason, peer NodeID) {
	m.eff.Transitions = append(m.eff.Transitions, Transition{
		From: from, To: m.state.Role, Reason: why,
		Term: m.leadershipTerm(), Leader: m.perceivedLeader(), Peer: peer,
	})
}

// perceivedLeader is the leader that this node is or follows; "" for none.
func (m *Machine) perceivedLeader() NodeID {
	switch m.state.Role {
	case Leader:
		return m.cfg.Self
	case Follower:
		return m.state.Follower.Leader
	default:
		return ""
	}
}

// leadershipTerm is the term of the perceived leader, or else the node's own.
func (m *Machine) leadershipTerm() lsn.Term {
	switch {
	case m.state.Role == Leader:
		return m.state.Leader.Term
	case m.state.Follower.Leader != "":
		return m.state.Follower.LeaderTerm
	}
	return m.state.Term
}

// enterTerm is the one place where the term rises. Votes and cessions belong to
// their term, so this is also the one place that forgets them.
func (m *Machine) enterTerm(t lsn.Term) {
	if t <= m.state.Term {
		return
	}
	m.state.Term = t
	m.state.Vote, m.state.Ceded = "", 0
	m.eff.Persist = t
}

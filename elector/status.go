package elector

import (
	"github.com/bmqelect/bmqelect/lsn"
)

// Status is a snapshot of a machine for people and programs. A Time of 0 means
// "none"; times are readings of the node's own clock.
type Status struct {
	Role   Role
	Term   lsn.Term // of the leadership that the node holds or follows, or else its own
	Leader NodeID   // the leader that it is or follows; "" for none
	// IndirectLeader is a leader that the node knows only from another node's
	// refusal; it does not follow it. "" for none.
	IndirectLeader NodeID
	Tentative      NodeID   // whom it voted for and has not heard a heartbeat from yet
	LSN            lsn.LSN  // newest issued (leader) or heard of
	LeaseEnd       Time     // leader: its lease is valid before this; Never if it needs none
	HeardAt        Time     // follower: when the leader's newest heartbeat came
	PromisedTo     NodeID   // holder of the outstanding promise; "" for none
	PromiseEnd     Time     // when that promise ends
	EmbargoEnd     Time     // until when a voter that has just started supports nobody
	Scouting       bool     // a scouting round is open
	StandAt        Time     // when it intends to stand for election
	Supporters     []NodeID // leader: the voters whose acks back its lease, itself included; sorted
	Linked         []NodeID // voters to which a link is up; sorted
	Quorum         int      // voters needed
	Able           bool     // the node may stand for election, as its acks say
	RestEnd        Time     // it does not stand before: Resign told it so
	Handover       Handover // leader: the handover that is under way
	Writing        bool     // the node's term is not on disk yet; a candidate has not proposed itself yet
	NoTermsLeft    bool     // the node's term is the last there is: it can never be elected again
}

// Status returns a snapshot as of the last step.
func (m *Machine) Status() Status {
	s := &m.state
	p := m.promise()
	st := Status{
		Role: s.Role, Term: m.leadershipTerm(), Leader: m.perceivedLeader(),
		IndirectLeader: s.Follower.IndirectLeader, Tentative: s.Follower.Tentative,
		LSN: s.SeenLSN, LeaseEnd: s.Leader.LeaseEnd, HeardAt: s.Follower.HeardAt,
		PromisedTo: p.To, PromiseEnd: p.Until,
		Scouting: s.Follower.Round.IsOpen(), StandAt: s.Follower.StandAt,
		Linked: m.names(s.Linked.Has), Quorum: m.cfg.quorum,
		Able: m.mayStand(), RestEnd: s.RestEnd, Handover: s.Leader.Handover,
		Writing: s.Term > s.Durable, NoTermsLeft: s.Term >= lsn.MaxTerm,
	}
	if s.EmbargoEnd > s.Now {
		st.EmbargoEnd = s.EmbargoEnd
	}
	if s.Role == Leader {
		st.Supporters = m.names(m.supports)
	}
	return st
}

// names returns the voters that satisfy has, sorted.
func (m *Machine) names(has func(voter int) bool) []NodeID {
	var ids []NodeID
	for i, id := range m.cfg.voters {
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
	if m.state.Role != Leader {
		return Lease{}
	}
	return Lease{Term: m.state.Leader.Term, End: m.state.Leader.LeaseEnd}
}

// Valid reports whether the lease is valid at now.
func (l Lease) Valid(now Time) bool { return now < l.End }

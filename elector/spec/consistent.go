// Package spec states what must hold of a node of package elector, independently of its code.
// Tests, the simulator and explorations hold every step against it. It is no part of the
// protocol: no program needs it to run.
package spec

import (
	"cmp"
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
)

// Consistent returns what is wrong within the state of a machine after a step; nil if nothing
// is. It knows no history: a state is consistent if some history can lead to it.
func Consistent(s *elector.State) error {
	what := cmp.Or(ofTerms(s), ofRoles(s), ofFollower(s), ofCandidate(s), ofLeader(s))
	if what == "" {
		return nil
	}
	shown := *s // s itself stays off the heap
	return fmt.Errorf("state of a %s: not true: %s: %+v", shown.Role, what, shown)
}

// True returns what is not true about a message when it leaves a node that is in state s after the
// step; nil if it is true. Only a yes to scouting can be untrue: it says that the node is free to
// vote for the asker now, even if the message waited for the disk.
func True(s *elector.State, e *elector.Envelope) error {
	if e.Message.Kind != elector.ElectionScoutingResponse || !e.Message.WillVote {
		return nil
	}
	if s.Role >= elector.Candidate && alone(s) {
		return nil // it has stood since, asking nobody, as soon as its embargo was over
	}
	what := wrong(
		rule{"the term is to come", e.Message.ProposedTerm > s.Term},
		rule{"no promise to another binds", s.Promise.Until <= s.Now || s.Promise.To == e.To},
		rule{"no embargo binds", s.EmbargoEnd <= s.Now},
		rule{"nobody else leads", s.Role != elector.Leader &&
			(s.Follower.Leader == "" || s.Follower.Leader == e.To)},
	)
	if what == "" {
		return nil
	}
	return fmt.Errorf("%s, but it is not true: %s", *e, what)
}

// alone reports whether a node is the only voter of its record.
func alone(s *elector.State) bool {
	r := &s.Record.Accepted
	return !r.LSN.IsZero() && len(r.Voters.Voters()) == 1
}

// wrong returns the first text whose condition does not hold.
func wrong(rules ...rule) string {
	for _, r := range rules {
		if !r.holds {
			return r.text
		}
	}
	return ""
}

type rule struct {
	text  string
	holds bool
}

func ofTerms(s *elector.State) string {
	return wrong(
		rule{"the term is valid or none", s.Term == 0 || s.Term.Valid()},
		rule{"what is durable was asked for", s.Durable <= s.Asked},
		rule{"its term was asked for", s.Term <= s.Asked},
		rule{"a promise has a holder and an end", (s.Promise.To != "") == (s.Promise.Until != 0)},
	)
}

func ofRoles(s *elector.State) string {
	bound := max(s.Promise.Until, s.EmbargoEnd) > s.Now
	return wrong(
		rule{"only a FOLLOWER has its part",
			s.Role == elector.Follower || s.Follower == zero.Follower},
		rule{"only a CANDIDATE has its part",
			s.Role == elector.Candidate || s.Candidate == zero.Candidate},
		rule{"only a LEADER has its part", s.Role == elector.Leader || s.Leader == zero.Leader},
		rule{"only a LEADER is leaving", s.Role == elector.Leader || !s.Leaving},
		rule{"who stands or leads is bound to nobody", s.Role < elector.Candidate || !bound},
	)
}

func ofFollower(s *elector.State) string {
	f := &s.Follower
	open := f.Round.IsOpen()
	return wrong(
		rule{"a leader that is followed has a term and a deadline",
			f.Leader == "" || f.LeaderTerm > 0 && f.LeaderTerm <= s.Term && f.Carried == (f.SilentAt == 0)},
		rule{"a pair carries only a leader that is followed", f.Leader != "" || !f.Carried && f.SayAt == 0},
		rule{"who follows stands for nothing", f.Leader == "" || f.StandAt == 0 && !open},
		rule{"nobody else is awaited by who follows",
			f.Leader == "" || f.AwaitedLeader == "" || f.AwaitedLeader == f.Leader},
		rule{"an awaited leader has a deadline, and no rival here",
			f.AwaitedLeader == "" || (f.SilentAt != 0 || f.Carried) && !open},
		rule{"a round is about a term to come", !open || f.Round.ProposedTerm > s.Term},
		rule{"a round has an end", open == (f.RoundEnd != 0)},
		rule{"a round counts a voter once", f.Round.Yes&f.Round.No == 0},
		rule{"a wait has an end", f.StandAt != 0 || !f.Discovering && !f.Postponed && f.Ahead == ""},
	)
}

func ofCandidate(s *elector.State) string {
	b := &s.Candidate.Ballot
	return wrong(
		rule{"its ballot is about its term", s.Role != elector.Candidate || b.Term == s.Term},
		rule{"what it sent is durable", !b.Sent || b.Term <= s.Durable},
		rule{"a ballot counts a voter once", b.Yes&b.No == 0},
		rule{"an election has an end", b.Sent == (s.Candidate.End != 0)},
	)
}

func ofLeader(s *elector.State) string {
	l, leads := &s.Leader, s.Role == elector.Leader
	open := l.Reaffirm.Term != 0
	return wrong(
		rule{"it leads in a term", !leads || l.Term > 0 && l.Term <= s.Durable},
		rule{"its term is its own, or it re-affirms itself", !leads || open || l.Term == s.Term},
		rule{"it re-affirms itself in its own term, above that in which it leads",
			!open || l.Reaffirm.Term == s.Term && l.Term < s.Term},
		rule{"what it proposed is durable", !l.Reaffirm.Sent || l.Reaffirm.Term <= s.Durable},
		rule{"its lease runs", !leads || l.LeaseEnd > s.Now},
	)
}

var zero elector.State

// Package scouting is one round of ElectionScouting, the PreVote of the
// BlazingMQ elector: before a node proposes an election it asks every voter
// whether it would get the vote, and raises no term for the question.
//
// Round is the asker's tally, Rule the answerer's decision. Both are plain
// values without clock, randomness or I/O; they are not safe for concurrent use.
package scouting

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// Round is the asker's tally of one ElectionScouting round. It is a comparable
// value; the zero Round is not open.
type Round struct {
	ID           uint64   // identifies the round to its answers; never 0 while open
	ProposedTerm lsn.Term // the term that is asked about
	Yes, No      Voters
	retry        [MaxVoters]time.Duration // by voter: when to ask a No again; never if negative
}

// never marks a no that does not become a yes by time alone.
const never time.Duration = -1

// Open begins a round in which the asker, voter self, supports itself. An id of
// 0 is taken for 1.
func Open(id uint64, proposed lsn.Term, self int) Round {
	return Round{ID: max(id, 1), ProposedTerm: proposed, Yes: Voters(0).With(self)}
}

// IsOpen reports whether answers count.
func (r *Round) IsOpen() bool { return r.ID != 0 }

// Answers reports whether an answer with this id and term is one to this round.
func (r *Round) Answers(id uint64, proposed lsn.Term) bool {
	return r.IsOpen() && r.ID == id && r.ProposedTerm == proposed
}

// Answered reports whether voter's answer is counted already.
func (r *Round) Answered(voter int) bool { return (r.Yes | r.No).Has(voter) }

// Record counts the first answer of a voter. Of later ones only a yes after a no counts.
func (r *Round) Record(voter int, a Answer) {
	if r.Yes.Has(voter) {
		return
	}
	if a.WillVote {
		r.Yes, r.No = r.Yes.With(voter), r.No.Without(voter)
		return
	}
	r.No = r.No.With(voter)
	r.retry[voter] = never
	// The next round has a higher term, so a term that was too low is no reason to wait.
	if a.RetryAfter > 0 || a.Cause == CauseTerm {
		r.retry[voter] = max(a.RetryAfter, 0)
	}
}

// RetryAfter returns the shortest wait after which the voters that said yes and those whose no has
// become a yes by then could be a quorum; ok is false if waiting alone does not help.
func (r *Round) RetryAfter(quorum int) (wait time.Duration, ok bool) {
	missing := quorum - r.Yes.Count()
	if missing <= 0 {
		return 0, true
	}
	var space [MaxVoters]time.Duration
	waits := space[:0]
	for v, wait := range r.retry {
		if r.No.Has(v) && wait != never {
			waits = append(waits, wait)
		}
	}
	if len(waits) < missing {
		return 0, false
	}
	slices.Sort(waits)
	return waits[missing-1], true
}

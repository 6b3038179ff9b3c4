package scouting

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// Cause says why a node answered no to ElectionScouting or ElectionProposal.
type Cause uint8

// The causes of a no. CauseNone goes with a yes.
const (
	CauseNone    Cause = iota
	CauseLeader        // the answerer is, or perceives, another leader
	CausePromise       // the answerer promised its vote to another for a while
	CauseEmbargo       // the answerer started a moment ago and may have promised before
	CauseTerm          // the term is not above the answerer's own
	CauseRank          // the answerer is scouting itself and is not outranked
	CauseRecord        // the answerer has a newer record than the asker
)

var causeNames = [...]string{"none", "leader", "promise", "embargo", "term", "rank", "record"}

// String returns the cause's name in lower case.
func (c Cause) String() string {
	if c.Valid() {
		return causeNames[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// Valid reports whether c is one of the causes above.
func (c Cause) Valid() bool { return int(c) < len(causeNames) }

// Rule selects how a node without a leader answers ElectionScouting.
type Rule uint8

const (
	// RuleDefault is yes unless there is a reason for no; rank decides only between two
	// nodes that scout at the same time.
	RuleDefault Rule = iota
	// RuleNodeOrder is the article's literal rule: yes only to a node whose
	// ID is above the answerer's own. It has a live-lock of its own: where only
	// the lowest node reaches a quorum, nobody is ever elected.
	RuleNodeOrder
)

var ruleNames = [...]string{"default", "node-order"}

// String returns the rule's name as used in configuration.
func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return fmt.Sprintf("rule(%d)", uint8(r))
}

// Stance is what the answerer knows when it is asked. Answering never changes it.
type Stance struct {
	Self        Rank
	Term        lsn.Term      // the answerer's own term
	Leader      NodeID        // the leader that it perceives (itself, if it leads); "" for none
	PromisedTo  NodeID        // holder of its outstanding promise; "" for none
	PromiseLeft time.Duration // how long that promise still binds
	EmbargoLeft time.Duration // how long a voter that has just started supports nobody; 0 for none
	Record      lsn.LSN       // of the newest record that it accepted; zero for none
	Scouting    bool          // whether it is in an open scouting round itself
}

// Answer is the reply to a question for support. RetryAfter is set only where time alone
// turns the no into a yes.
type Answer struct {
	WillVote   bool
	Cause      Cause
	RetryAfter time.Duration
}

// Answer says whether a node of this stance supports asker, whose newest record is that of an LSN,
// in the proposed term. It is pure: the same stance and question always get the same answer.
func (r Rule) Answer(s Stance, asker Rank, proposed lsn.Term, record lsn.LSN) Answer {
	switch {
	case s.Leader != "" && s.Leader != asker.Node:
		// §4.1. The leader itself asks when it leads no longer, or to be re-affirmed.
		return Answer{Cause: CauseLeader}
	case s.EmbargoLeft > 0: // §4.2
		return Answer{Cause: CauseEmbargo, RetryAfter: s.EmbargoLeft}
	case s.PromisedTo != "" && s.PromisedTo != asker.Node: // §4.3
		return Answer{Cause: CausePromise, RetryAfter: s.PromiseLeft}
	case record.Less(s.Record): // §15.4
		return Answer{Cause: CauseRecord}
	case proposed <= s.Term: // §4.4
		return Answer{Cause: CauseTerm}
	case r == RuleNodeOrder && s.Self.Node > asker.Node,
		// §4.5; who has the newer record goes first, because it would refuse this node: §15.4
		r == RuleDefault && s.Scouting && s.Record == record && s.Self.Compare(asker) > 0:
		return Answer{Cause: CauseRank}
	}
	return Answer{WillVote: true}
}

package scouting_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// TestRuleAnswer asks node b, in term 5, for its support in every situation in
// which the answer differs.
func TestRuleAnswer(t *testing.T) {
	yes := scouting.Answer{WillVote: true}
	no := func(c scouting.Cause, after time.Duration) *scouting.Answer {
		return &scouting.Answer{Cause: c, RetryAfter: after}
	}
	const ms = time.Millisecond
	for _, tc := range []struct {
		name      string
		stance    scouting.Stance
		question  question
		answer    scouting.Answer
		nodeOrder *scouting.Answer // nil: the same
	}{
		{"nothing speaks against the higher node", stance(), ask("c", 6), yes, nil},
		{"nor against the lower one, but for the node order", stance(), ask("a", 6), yes,
			no(scouting.CauseRank, 0)},
		{"a newer record than the asker's", stance(record), ask("c", 6), *no(scouting.CauseRecord, 0),
			nil},
		{"a promise goes before it", stance(record, promise("a", 70*ms)), ask("c", 6),
			*no(scouting.CausePromise, 70*ms), nil},
		{"it goes before the term", stance(record), ask("c", 5), *no(scouting.CauseRecord, 0), nil},
		{"own term", stance(), ask("c", 5), *no(scouting.CauseTerm, 0), nil},
		{"lower term", stance(), ask("c", 1), *no(scouting.CauseTerm, 0), nil},
		{"another leader", stance(leader("a")), ask("c", 6), *no(scouting.CauseLeader, 0), nil},
		{"the leader itself asks", stance(leader("c")), ask("c", 6), yes, nil},
		{"the answerer leads", stance(leader("b")), ask("c", 6), *no(scouting.CauseLeader, 0), nil},
		{"promised to another", stance(promise("a", 70*ms)), ask("c", 6),
			*no(scouting.CausePromise, 70*ms), nil},
		{"promised to the asker", stance(promise("c", 70*ms)), ask("c", 6), yes, nil},
		{"embargo", stance(embargo(30 * ms)), ask("c", 6), *no(scouting.CauseEmbargo, 30*ms), nil},
		{"the last moment of the embargo", stance(embargo(1)), ask("c", 6),
			*no(scouting.CauseEmbargo, 1), nil},
		{"a leader outweighs embargo and promise",
			stance(leader("a"), embargo(30*ms), promise("a", 70*ms)), ask("c", 6),
			*no(scouting.CauseLeader, 0), nil},
		{"the leader asks during the embargo", stance(leader("c"), embargo(30*ms)), ask("c", 6),
			*no(scouting.CauseEmbargo, 30*ms), nil},
		{"scouting, asked by a higher node", stance(scouts), ask("c", 6), yes, nil},
		{"scouting, asked by a lower node", stance(scouts), ask("a", 6),
			*no(scouting.CauseRank, 0), nil},
		{"scouting, asked by a lower node of higher priority", stance(scouts), askWith("a", 1), yes,
			no(scouting.CauseRank, 0)},
		{"scouting, asked by a higher node of lower priority", stance(scouts), askWith("c", -1),
			*no(scouting.CauseRank, 0), &yes},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := tc.question
			got := scouting.RuleDefault.Answer(tc.stance, q.asker, q.term, q.record)
			require.Equal(t, tc.answer, got, "default")
			got = scouting.RuleNodeOrder.Answer(tc.stance, q.asker, q.term, q.record)
			require.Equal(t, *cmp.Or(tc.nodeOrder, &tc.answer), got, "node order")
		})
	}
}

// stance is that of node b in term 5, leaderless and free, except for the changes.
func stance(changes ...func(*scouting.Stance)) scouting.Stance {
	s := scouting.Stance{Self: scouting.Rank{Node: "b"}, Term: 5}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func leader(id scouting.NodeID) func(*scouting.Stance) {
	return func(s *scouting.Stance) { s.Leader = id }
}

func promise(to scouting.NodeID, left time.Duration) func(*scouting.Stance) {
	return func(s *scouting.Stance) { s.PromisedTo, s.PromiseLeft = to, left }
}

func embargo(left time.Duration) func(*scouting.Stance) {
	return func(s *scouting.Stance) { s.EmbargoLeft = left }
}

func scouts(s *scouting.Stance) { s.Scouting = true }

func record(s *scouting.Stance) { s.Record = lsn.LSN{Term: 3, Counter: 1} }

type question struct {
	asker  scouting.Rank
	term   lsn.Term
	record lsn.LSN
}

func ask(id scouting.NodeID, term lsn.Term) question {
	return question{scouting.Rank{Node: id}, term, lsn.LSN{}}
}

func askWith(id scouting.NodeID, priority int) question {
	return question{scouting.Rank{Node: id, Priority: priority}, 6, lsn.LSN{}}
}

func TestNames(t *testing.T) {
	for c, name := range []string{
		"none", "leader", "promise", "embargo", "term", "rank", "record", "cause(7)",
	} {
		require.Equal(t, name, scouting.Cause(c).String())
		require.Equal(t, c < 7, scouting.Cause(c).Valid(), name)
	}
	require.Equal(t, "default", scouting.RuleDefault.String())
	require.Equal(t, "node-order", scouting.RuleNodeOrder.String())
	require.Equal(t, "rule(7)", scouting.Rule(7).String())
}

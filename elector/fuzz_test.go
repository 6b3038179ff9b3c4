package elector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// FuzzReceived hands any message, with any value in any field and from anybody,
// to a machine in every situation, lets time pass, and has the disk answer.
// Nothing panics, no term goes down, nothing is said about a term that is not
// durable, and no message keeps a node from ever acting again.
func FuzzReceived(f *testing.F) {
	for k := range 15 {
		f.Add(uint8(k), "b", uint64(3), uint64(3), uint64(9), 2, true, uint8(0), "c", uint64(3), int64(5),
			uint64(1), int64(6e9), uint64(3), uint64(7), true, "a")
		f.Add(uint8(k), "c", uint64(1)<<62, uint64(1)<<63, uint64(0), -1, false, uint8(4), "", uint64(0),
			int64(-5),
			uint64(1)<<63, int64(-1), uint64(1)<<63-1, ^uint64(0), false, "*")
		f.Add(uint8(k), "b", uint64(lsn.MaxTerm), uint64(3), uint64(1), 0, false, uint8(4), "c",
			uint64(lsn.MaxTerm),
			int64(1), uint64(1), int64(6e9), uint64(3), uint64(7), false, "")
		f.Add(uint8(k), "o", ^uint64(0), uint64(3), uint64(1), 0, true, uint8(0), "", uint64(0),
			int64(0), uint64(1), int64(6e9), uint64(0), uint64(0), true, "")
		f.Add(uint8(k), "b", ^uint64(0), uint64(3), uint64(1), 0, true, uint8(0), "", uint64(0),
			int64(0), uint64(1), int64(6e9), uint64(0), uint64(0), true, "")
		f.Add(uint8(k), "zz", uint64(3), uint64(3), uint64(1), 0, true, uint8(0), "", uint64(0),
			int64(0), uint64(1), int64(6e9), uint64(0), uint64(0), true, "")
	}
	var all []*driven
	for _, role := range roles {
		all = append(all, situations(f, role)...)
	}
	f.Fuzz(func(t *testing.T, kind uint8, from string, term, proposed, round uint64, priority int,
		willVote bool,
		cause uint8, hint string, hintTerm uint64, retry int64, seq uint64, sentAt int64, lsnTerm,
		counter uint64,
		mayStand bool, successor string,
	) {
		in := elector.Received{From: elector.NodeID(from), Message: elector.Message{
			Kind: elector.Kind(kind), Term: lsn.Term(term), ProposedTerm: lsn.Term(proposed), Round: round,
			Priority: priority, WillVote: willVote, Cause: scouting.Cause(cause),
			Leader:     elector.NodeID(hint),
			LeaderTerm: lsn.Term(hintTerm), RetryAfter: time.Duration(retry), Sequence: seq,
			SentAt: elector.Time(sentAt), LSN: lsn.LSN{Term: lsn.Term(lsnTerm), Counter: counter},
			MayStand: mayStand, Successor: elector.NodeID(successor), Reach: uint8(round),
			Period: time.Duration(retry), Late: time.Duration(counter),
			Record: lsn.LSN{Term: lsn.Term(hintTerm), Counter: seq}, Entered: lsn.Term(proposed),
			Committed: lsn.LSN{Term: lsn.Term(hintTerm), Counter: seq - 1},
		}}
		if from != "o" {
			in.Identity = directory(from)
		}
		if from != "zz" {
			r := recordOf(lsn.Term(hintTerm), seq)
			r.Voters = r.Voters.With(elector.Voter{Node: elector.NodeID(hint)}).Without("c")
			in.Message.Offer = &r
		}
		for _, s := range all {
			endure(t, &driven{Machine: s.Clone(), now: s.now}, in)
		}
	})
}

// endure steps s with in, alone and as an answer to what is open, and checks what must always hold.
func endure(t *testing.T, s *driven, in elector.Received) {
	answer := in
	answer.Message.Round = s.State().Follower.Round.ID
	answer.Message.ProposedTerm = s.State().Term + 1
	for _, input := range []elector.Input{
		in, in, answer, elector.Tick{}, elector.Persisted{Term: s.State().Durable + 1}, in,
		elector.Tick{},
	} {
		check(t, s, input)
		if _, ok := input.(elector.Tick); ok {
			s.now = s.now.Add(3 * time.Second)
		}
	}
	check(t, s, elector.Persisted{Term: s.State().Term, Record: s.Record().Accepted.LSN})
	check(t, s, elector.Publish{Value: elector.Value{Size: 1, Hash: [32]byte{1}}})
	check(t, s, elector.ChangeVoters{Remove: "b"})
	check(t, s, elector.Persisted{Term: s.State().Term, Record: s.Record().Accepted.LSN})
	check(t, s, elector.Stop{})
}

func check(t *testing.T, s *driven, in elector.Input) {
	before := s.State()
	e := s.Step(s.now, 7, in)
	after := s.State()
	require.NoError(t, spec.Consistent(&after))
	require.GreaterOrEqual(t, after.Term, before.Term, "the term went down")
	require.GreaterOrEqual(t, after.Durable, before.Durable, "the durable term went down")
	require.True(t, after.Term.Valid(), "an absurd term was adopted")
	writing := after.Durable < after.Term // a candidate has no time limit before its term is durable
	wedged := e.Wake == elector.Never && after.Role != elector.Dormant && !after.Unable &&
		after.Term < lsn.MaxTerm && !writing
	require.False(t, wedged, "nothing will ever make it act again")
	for _, m := range e.Messages {
		require.LessOrEqual(t, m.Message.Term, after.Durable, "%s before the term is durable", m)
	}
	for _, tr := range e.Transitions {
		require.True(t, tr.Legal(), "%s", tr)
	}
	checkDuty(t, in, before, after, e)
}

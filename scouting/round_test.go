package scouting_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/scouting"
)

func TestRoundCountsAVoterOnce(t *testing.T) {
	r := scouting.Open(9, 6, 0)
	r.Record(1, scouting.Answer{})
	r.Record(1, scouting.Answer{})
	r.Record(2, scouting.Answer{WillVote: true})
	r.Record(2, scouting.Answer{})
	r.Record(0, scouting.Answer{})
	require.Equal(t, scouting.Voters(0b101), r.Yes,
		"the asker supports itself, whatever arrives in its name; no no replaces a yes")
	require.Equal(t, scouting.Voters(0b010), r.No)
	require.True(t, r.Answered(0) && r.Answered(1) && r.Answered(2) && !r.Answered(3))
	r.Record(1, scouting.Answer{WillVote: true})
	require.Equal(t, scouting.Voters(0b111), r.Yes, "a yes replaces a no")
	require.Zero(t, r.No)
}

func TestRoundAnswers(t *testing.T) {
	r := scouting.Open(9, 6, 0)
	require.True(t, r.Answers(9, 6))
	require.False(t, r.Answers(8, 6), "another round")
	require.False(t, r.Answers(9, 7), "another term")

	var none scouting.Round
	require.False(t, none.IsOpen())
	require.False(t, none.Answers(0, 0), "no answer is one to a round that is not open")

	first := scouting.Open(0, 6, 0)
	require.True(t, first.IsOpen(), "an ID of 0 would make an open round look closed")
	require.True(t, first.Answers(1, 6))
}

func TestRoundRetryAfter(t *testing.T) {
	const ms = time.Millisecond
	wait := func(d time.Duration) scouting.Answer {
		return scouting.Answer{Cause: scouting.CausePromise, RetryAfter: d}
	}
	leads := scouting.Answer{Cause: scouting.CauseLeader}
	term := scouting.Answer{Cause: scouting.CauseTerm}
	yes := scouting.Answer{WillVote: true}
	for _, tc := range []struct {
		name    string
		quorum  int
		answers []scouting.Answer
		want    time.Duration
		ok      bool
	}{
		{"no answer", 2, nil, 0, false},
		{"a quorum is there", 2, []scouting.Answer{yes}, 0, true},
		{"a leader stands in the way", 2, []scouting.Answer{leads, leads}, 0, false},
		{"the shortest will do", 2, []scouting.Answer{wait(80 * ms), wait(20 * ms)}, 20 * ms, true},
		{"two must come round", 3, []scouting.Answer{wait(80 * ms), wait(20 * ms), wait(90 * ms)},
			80 * ms, true},
		{"one yes, one to come round", 3, []scouting.Answer{yes, wait(80 * ms), wait(90 * ms)}, 80 * ms,
			true},
		{"too few come round", 3, []scouting.Answer{wait(80 * ms), leads, leads}, 0, false},
		{"a higher term fixes it now", 2, []scouting.Answer{term, leads}, 0, true},
		{"a negative wait is none", 2, []scouting.Answer{wait(-ms), leads}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := scouting.Open(9, 6, 0)
			for i, a := range tc.answers {
				r.Record(i+1, a)
			}
			got, ok := r.RetryAfter(tc.quorum)
			require.Equal(t, tc.ok, ok)
			require.Equal(t, tc.want, got)
		})
	}
}

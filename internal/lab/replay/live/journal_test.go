package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// slept is the history of a live leader whose process is paused at 10 s.
func slept(t *testing.T, pause time.Duration) *history.History {
	return led(t, func(j *journal, _ time.Time, at func(time.Duration, func())) {
		at(10*time.Second, func() { j.paused("a", time.Second) })
		at(10*time.Second+pause, func() { j.up("a") })
	})
}

// led is the history of a live leader, and what happens to it.
func led(
	t *testing.T, more func(*journal, time.Time, func(time.Duration, func())),
) *history.History {
	start, j := time.Now(), &journal{}
	at := func(d time.Duration, note func()) {
		note()
		j.entries[len(j.entries)-1].at = start.Add(d)
	}
	turn := func(from, to elector.Role, why elector.Reason, leader elector.NodeID) func() {
		return func() {
			j.transition(start, "a", elector.Transition{From: from, To: to, Reason: why, Term: 1,
				Leader: leader})
		}
	}
	at(0, func() { j.up("a") })
	at(1*time.Second, turn(elector.Dormant, elector.Follower, elector.Started, ""))
	at(2*time.Second, turn(elector.Follower, elector.Candidate, elector.Proposed, ""))
	at(3*time.Second, turn(elector.Candidate, elector.Leader, elector.Elected, "a"))
	more(j, start, at)
	sc, err := scenario.Parse("nap.yaml", []byte("{name: nap, nodes: [a], duration: 20s}"))
	require.NoError(t, err)
	return j.history(sc, start, 0)
}

// TestEveryReasonIsUnderstood: a reason that the journal does not know would make
// a legal transition illegal.
func TestEveryReasonIsUnderstood(t *testing.T) {
	for r := elector.ReasonNone; r.Valid(); r++ {
		known := replay.Transition("", "", r.String())
		require.Equal(t, r, known.Reason)
	}
}

func TestALiveLeaderLeadsOnAfterANapWithinItsLease(t *testing.T) {
	h := slept(t, 300*time.Millisecond)
	require.Empty(t, h.Broken)
	for _, second := range []time.Duration{5, 12, 19} {
		require.Equal(t, history.NodeID("a"), h.LeaderAt(second*time.Second), "at %d s", second)
	}
}

func TestALiveLeaderDoesNotLeadAfterALongSleep(t *testing.T) {
	h := slept(t, 5*time.Second)
	require.Empty(t, h.Broken)
	require.Equal(t, history.NodeID("a"), h.LeaderAt(10500*time.Millisecond))
	require.Empty(t, h.LeaderAt(12*time.Second))
	require.Empty(t, h.LeaderAt(16*time.Second))
}

// It is seen some time later, and until then its process may say that it leads.
func TestALiveLeaderThatAStepEndsLeadsUntilTheStep(t *testing.T) {
	h := led(t, func(j *journal, start time.Time, at func(time.Duration, func())) {
		at(10*time.Second+5*time.Millisecond, func() { j.down("a", start.Add(10*time.Second)) })
	})
	require.Equal(t, history.NodeID("a"), h.LeaderAt(10*time.Second-1))
	require.Empty(t, h.LeaderAt(10*time.Second))
}

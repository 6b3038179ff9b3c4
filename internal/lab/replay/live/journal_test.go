package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// slept is the history of a live leader whose process is paused at 10 s.
func slept(t *testing.T, settings string, pause time.Duration) *history.History {
	return led(t, settings, func(j *journal, _ time.Time) {
		j.paused("a", time.Second)
		time.Sleep(pause)
		j.up("a")
	})
}

// led is the history of a live leader, and what happens to it from 10 s on.
func led(
	t *testing.T, settings string, more func(*journal, time.Time),
) (h *history.History) {
	synctest.Test(t, func(t *testing.T) {
		start, j := time.Now(), &journal{}
		turn := func(from, to elector.Role, why elector.Reason, leader elector.NodeID) {
			time.Sleep(time.Second)
			j.transition(time.Now(), "a", elector.Transition{From: from, To: to, Reason: why, Term: 1,
				Leader: leader})
		}
		j.up("a")
		turn(elector.Dormant, elector.Follower, elector.Started, "")
		turn(elector.Follower, elector.Candidate, elector.Proposed, "")
		turn(elector.Candidate, elector.Leader, elector.Elected, "a")
		time.Sleep(7 * time.Second)
		more(j, start)
		text := "{name: nap, nodes: [a], duration: 20s" + settings + "}"
		sc, err := scenario.Parse("nap.yaml", []byte(text))
		require.NoError(t, err)
		h = j.history(sc, start, 0)
	})
	return h
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
	h := slept(t, "", 300*time.Millisecond)
	require.Empty(t, h.Broken)
	for _, second := range []time.Duration{5, 12, 19} {
		require.Equal(t, history.NodeID("a"), h.LeaderAt(second*time.Second), "at %d s", second)
	}
}

func TestALiveLeaderDoesNotLeadAfterALongSleep(t *testing.T) {
	h := slept(t, "", 5*time.Second)
	require.Empty(t, h.Broken)
	require.Equal(t, history.NodeID("a"), h.LeaderAt(10500*time.Millisecond))
	require.Empty(t, h.LeaderAt(12*time.Second))
	require.Empty(t, h.LeaderAt(16*time.Second))
}

func TestALiveLeaderWithoutLeaseLeadsWhileItSleeps(t *testing.T) {
	h := slept(t, ", scouting: false", 5*time.Second)
	require.Equal(t, history.NodeID("a"), h.LeaderAt(12*time.Second))
}

// It is seen some time later, and until then its process may say that it leads.
func TestALiveLeaderThatAStepEndsLeadsUntilTheStep(t *testing.T) {
	h := led(t, "", func(j *journal, start time.Time) {
		time.Sleep(5 * time.Millisecond)
		j.down("a", start.Add(10*time.Second))
	})
	require.Equal(t, history.NodeID("a"), h.LeaderAt(10*time.Second-1))
	require.Empty(t, h.LeaderAt(10*time.Second))
}

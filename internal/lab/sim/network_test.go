package sim_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// From a cut on nothing arrives, not even what was under way, and both ends give
// their connection up after the link timeout.
func TestCutLosesWhatIsUnderWayAndTheConnectionLater(t *testing.T) {
	cfg := cluster(1, 3)
	cfg.Network.Delay = 200 * ms
	var cut, healed, lost time.Duration
	down := map[elector.NodeID]time.Duration{}
	cfg.Observer = func(e *sim.Event) {
		between := min(e.Node, e.Peer) == "a" && max(e.Node, e.Peer) == "b"
		if cut == 0 || healed != 0 || !between {
			return
		}
		require.NotEqual(t, sim.EventDelivered, e.Kind, "at %s, after the cut at %s", e.At, cut)
		switch e.Kind {
		case sim.EventLost:
			lost = max(lost, e.At)
		case sim.EventLinkDown:
			require.Equal(t, elector.EvidenceTimeout, e.Detail)
			down[e.Node] = e.At - cut
		}
	}
	s := start(t, cfg)
	require.NoError(t, s.RunUntil(20*time.Second+100*ms))
	cut = s.Now()
	require.NoError(t, s.Cut("a", "b"))
	require.NoError(t, s.Cut("b", "a"))
	require.NoError(t, s.RunFor(10*time.Second))
	require.Equal(t, map[elector.NodeID]time.Duration{"a": 3 * time.Second, "b": 3 * time.Second},
		down)
	require.Positive(t, lost, "messages were lost before the ends knew")
	healed = s.Now()
	s.HealAll()
	require.NoError(t, s.RunFor(10*time.Second))
	leader(t, s)
}

// A peer may prove a crash only if it has seen the connection's FIN. After a silent crash, a
// later boot may be that of a copied disk: it proves nothing.
func TestOnlyACrashWithAFINIsProven(t *testing.T) {
	for _, c := range []struct {
		silent bool
		down   time.Duration
		peers  int // that have a proof
	}{{false, time.Second, 4}, {true, time.Second, 0}, {true, 10 * time.Second, 0}} {
		cfg := led(1, 5)
		proofs := []any{}
		cfg.Observer = func(e *sim.Event) {
			if e.Kind == sim.EventDied {
				proofs = append(proofs, e.Detail)
			}
		}
		s := start(t, cfg)
		require.NoError(t, s.Crash("a", sim.Crash{Silent: c.silent}))
		require.NoError(t, s.RunFor(c.down))
		require.NoError(t, s.Restart("a"))
		require.NoError(t, s.RunFor(time.Second))
		require.Equal(t, slices.Repeat([]any{elector.ProofRefusedAfterEOF}, c.peers), proofs,
			"%+v", c)
	}
}

func TestActionsOnTheWrongNodesAreErrors(t *testing.T) {
	s := start(t, led(1, 5))
	require.ErrorContains(t, s.Cut("a", "z"), "cut a->z: these are not two nodes")
	require.ErrorContains(t, s.Cut("a", "a"), "cut a->a: these are not two nodes")
	require.ErrorContains(t, s.Restart("a"), "a runs already")
	require.ErrorContains(t, s.Resume("a"), "not paused")
	require.ErrorContains(t, s.SetFaults("a", "a", sim.Faults{}), "faults a->a: these are not")
	require.NoError(t, s.Pause("a"))
	require.ErrorContains(t, s.Stop("a"), "stop a: it is paused")
	require.NoError(t, s.Crash("a", sim.Crash{}))
	for _, do := range []func(elector.NodeID) error{s.Pause, s.Resume, s.Stop} {
		require.ErrorContains(t, do("a"), "a does not run")
	}
}

func TestActionsOfTheSameTimeHappenInTheOrderOfTheCalls(t *testing.T) {
	s := start(t, cluster(1, 3))
	var order []int
	for i := range 10 {
		s.At(time.Second, func(*sim.Sim) error {
			order = append(order, i)
			return nil
		})
	}
	require.NoError(t, s.RunUntil(time.Second))
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
}

// A message may come late, but the receiver has met the process by then that sent it.
func TestALateMessageIsNotTheFirstOfItsProcess(t *testing.T) {
	cfg := cluster(1, 2)
	cfg.Network = sim.Faults{Delay: 50 * ms, LatePPM: 500_000, LateMax: 300 * ms}
	boot, met, sentBy, early := 0, 0, map[int]int{}, 0
	cfg.Observer = func(e *sim.Event) {
		switch {
		case e.Kind == sim.EventStarted && e.Node == "a":
			boot++
		case e.Kind == sim.EventLinkUp && e.Node == "b":
			met = boot
		case e.Kind == sim.EventSent && e.Node == "a":
			sentBy[e.Number] = boot
		case e.Kind == sim.EventDelivered && e.Node == "b":
			require.GreaterOrEqual(t, met, sentBy[e.Number], e)
		case e.Kind == sim.EventLost && e.Node == "a" && met < sentBy[e.Number]:
			early++
		}
	}
	s := start(t, cfg)
	require.NoError(t, s.RunFor(ms))
	cut := func() error { return s.Partition() }
	for i := range time.Duration(500) {
		require.NoError(t, errors.Join(cut(), s.Crash("a", sim.Crash{Silent: true}), s.Restart("a")))
		require.NoError(t, s.RunFor(5*time.Second)) // it scouts
		s.HealAll()
		require.NoError(t, s.RunFor(i*ms))
		require.NoError(t, cut()) // perhaps before the answer to the dial
		require.NoError(t, s.RunFor(60*ms))
		s.HealAll()
		require.NoError(t, s.RunFor(time.Second))
		require.NoError(t, errors.Join(s.Crash("a", sim.Crash{}), s.Restart("a")))
		require.NoError(t, s.RunFor(i*ms)) // perhaps between the dial and its answer
		require.NoError(t, errors.Join(s.Crash("a", sim.Crash{Silent: true}), s.Restart("a")))
		require.NoError(t, s.RunFor(10*time.Second))
	}
	require.NotZero(t, early)
}

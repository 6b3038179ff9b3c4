package omega_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/omega"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// run is a simulated cluster: who follows whom, and what was sent.
type run struct {
	*sim.Sim
	t       require.TestingT
	ids     []elector.NodeID
	follows map[elector.NodeID]elector.NodeID // of those that are up
	sent    map[[2]elector.NodeID]int         // ALIVEs, from one to another
	changes int
}

func start(
	t require.TestingT, cfg sim.Config, n int, timing elector.Timing, ask detector.QoS,
) *run {
	r := &run{t: t, follows: map[elector.NodeID]elector.NodeID{}, sent: map[[2]elector.NodeID]int{}}
	for i := range n {
		r.ids = append(r.ids, elector.NodeID(fmt.Sprintf("n%02d", i)))
	}
	for _, id := range r.ids {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{
			Elector: elector.Config{Self: id, Voters: r.ids, Timing: timing, QoS: ask},
		})
	}
	cfg.Observer = func(e *sim.Event) {
		switch e.Kind {
		case sim.EventStarted:
			r.follows[e.Node] = ""
		case sim.EventCrashed, sim.EventStopped:
			delete(r.follows, e.Node)
		case sim.EventTransition:
			r.follows[e.Node] = e.Transition.Leader
			r.changes++
		case sim.EventSent:
			if _, ok := e.Message.(omega.Alive); ok {
				r.sent[[2]elector.NodeID{e.Node, e.Peer}]++
			}
		}
	}
	s, err := sim.New(cfg)
	require.NoError(t, err)
	r.Sim = s
	return r
}

func (r *run) pass(d time.Duration) { require.NoError(r.t, r.RunUntil(r.Now()+d)) }

// leader requires that all follow the same one, which is up.
func (r *run) leader() elector.NodeID {
	for _, of := range r.follows {
		for id, other := range r.follows {
			require.Equal(r.t, of, other, "%s at %s", id, r.Now())
		}
		require.Contains(r.t, r.follows, of)
		return of
	}
	return ""
}

// other returns a node that is not this one.
func (r *run) other(than elector.NodeID) elector.NodeID {
	return r.ids[slices.IndexFunc(r.ids, func(id elector.NodeID) bool { return id != than })]
}

var quiet = sim.Faults{Delay: time.Millisecond}

// TestNewcomersAreNeverPreferred restarts each member in turn, the leader too. In Omega_lc and
// Omega_l only a crash of the leader moves leadership, in Omega_id each return of the smallest.
func TestNewcomersAreNeverPreferred(t *testing.T) {
	for _, a := range []algorithm.Algorithm{omega.ID, omega.LC, omega.L} {
		cfg := sim.Config{Seed: 1, Algorithm: a, Network: quiet}
		r := start(t, cfg, 5, elector.Article(), detector.QoS{})
		r.pass(10 * time.Second)
		for _, id := range r.ids {
			before := r.leader()
			require.NoError(t, r.Crash(id, sim.Crash{}))
			r.pass(5 * time.Second)
			successor := r.leader()
			require.Equal(t, id != before, successor == before, a.Name)
			require.NoError(t, r.Restart(id))
			r.pass(5 * time.Second)
			if a.Name == omega.ID.Name {
				require.Equal(t, r.ids[0], r.leader())
			} else {
				require.Equal(t, successor, r.leader(), a.Name)
			}
		}
	}
}

// TestMessagesInSteadyState counts them: n(n-1)/eta, or (n-1)/eta in Omega_l.
func TestMessagesInSteadyState(t *testing.T) {
	t.Parallel()
	timing := elector.Article()
	for _, n := range []int{5, 12, 32} {
		for _, a := range []algorithm.Algorithm{omega.ID, omega.LC, omega.L} {
			cfg := sim.Config{Seed: 1, Algorithm: a, Network: quiet}
			r := start(t, cfg, n, timing, detector.QoS{})
			r.pass(10 * time.Second)
			clear(r.sent)
			r.pass(20 * timing.HeartbeatBroadcast)
			ways := n * (n - 1)
			if a.Name == omega.L.Name {
				ways = n - 1
				require.Equal(t, 20, r.sent[[2]elector.NodeID{r.leader(), r.other(r.leader())}])
			}
			require.Len(t, r.sent, ways, a.Name)
			for way, count := range r.sent {
				require.Equal(t, 20, count, "%s: %v", a.Name, way)
			}
		}
	}
}

// TestEachLinkHasItsPeriod gives one link a loss. Each receiver gets the period that its link
// needs: on the lossy one the configurator's for such a link, on the others the longest.
func TestEachLinkHasItsPeriod(t *testing.T) {
	t.Parallel()
	ask := detector.QoS{
		Detect: time.Second, Mistakes: detector.Recurrence(100 * 24 * time.Hour), Accuracy: 0.99999988,
	}
	timing := elector.ForQoS(ask)
	for _, a := range []algorithm.Algorithm{omega.LC, omega.L} {
		cfg := sim.Config{Seed: 1, Algorithm: a, Network: quiet, LinkTimeout: time.Hour}
		r := start(t, cfg, 3, timing, ask)
		require.NoError(t, r.SetFaults("n00", "n02", sim.Faults{
			Tail: 10 * time.Millisecond, LossPPM: 100_000,
		}))
		r.pass(time.Minute)
		require.Equal(t, elector.NodeID("n00"), r.leader())
		clear(r.sent)
		r.changes = 0
		const span = 30 * time.Minute
		r.pass(span)
		period := func(to elector.NodeID) float64 {
			return span.Seconds() / float64(r.sent[[2]elector.NodeID{"n00", to}])
		}
		require.InEpsilon(t, timing.HeartbeatBroadcast.Seconds(), period("n01"), 0.01, a.Name)
		require.InEpsilon(t, 0.118, period("n02"), 0.1, a.Name)
		require.Zero(t, r.changes, a.Name)
		if a.Name == omega.L.Name { // to say what it wants, n02 needs no period of its own
			require.Less(t, r.sent[[2]elector.NodeID{"n02", "n00"}], 50)
		}
	}
}

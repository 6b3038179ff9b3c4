package sim_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// lives is what becomes of leaders that crash silently, one after the other.
type lives struct {
	*sim.Sim
	follows  map[elector.NodeID]elector.NodeID // what each node follows
	crashed  elector.NodeID                    // the newest one
	at       time.Duration                     // of that crash
	detected []time.Duration                   // how long after it, by each that suspects it
	mistakes []time.Duration                   // when a leader was suspected that was up
}

func (w *lives) observe(e *sim.Event) {
	if e.Kind != sim.EventTransition {
		return
	}
	if e.Transition.Reason == elector.LeaderNoHeartbeat {
		if w.follows[e.Node] == w.crashed {
			w.detected = append(w.detected, e.At-w.at)
		} else {
			w.mistakes = append(w.mistakes, e.At)
		}
	}
	w.follows[e.Node] = e.Transition.Leader
}

// Asked: a crash is detected within 200 ms, with a mistake a month. It is promised on links of 1 ms
// that lose nothing, and kept: messages come each by itself here, as datagrams do. A life ends with
// a silent crash of the leader. A few short lives are played, or KEPT_LIVES=1000 of 10 minutes.
func TestAMistakeAMonthIsPromisedAndKept(t *testing.T) {
	count, mean := 20, time.Minute
	if given, err := strconv.Atoi(os.Getenv("KEPT_LIVES")); err == nil {
		count, mean = given, 10*time.Minute
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("KEPT_SEED"), "1"), 10, 64)
	require.NoError(t, err)
	for name, network := range map[string]sim.Faults{
		"always 1 ms": {Delay: ms}, "1 ms, exponential": {Tail: ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := detector.QoS{
				Detect: 200 * ms, Mistakes: detector.Recurrence(30 * 24 * time.Hour), Accuracy: 0.99999,
			}
			w := &lives{follows: map[elector.NodeID]elector.NodeID{}}
			random, cfg := rand.New(rand.NewPCG(seed, 3)), cluster(seed, 3)
			cfg.Network, cfg.Observer = network, w.observe
			for i := range cfg.Nodes {
				cfg.Nodes[i].Elector.QoS, cfg.Nodes[i].Elector.Timing = ask, elector.ForQoS(ask)
			}
			w.Sim = start(t, cfg)
			for range count {
				w.live(t, ask, time.Duration(random.ExpFloat64()*float64(mean)))
			}
			slices.Sort(w.detected)
			n := len(w.detected)
			t.Logf("%d lives, %s: %d suspicions after %s-%s, the median %s; mistakes: %v",
				count, w.Now().Round(time.Second), n, w.detected[0], w.detected[n-1], w.detected[n/2],
				w.mistakes)
			require.Empty(t, w.mistakes)
			require.GreaterOrEqual(t, n, count, "some of the two followers hear the next leader first")
			// The mean of a window varies by a part of the deviation.
			require.LessOrEqual(t, w.detected[n-1], ask.Detect+ms/2)
		})
	}
}

// live lets a leader be followed for that long once all promise what was asked, and then crash and
// be back after 5 s.
func (w *lives) live(t *testing.T, ask detector.QoS, long time.Duration) {
	w.crashed = ""
	require.NoError(t, w.RunFor(15*time.Second)) // the links from this leader are known
	led := leader(t, w.Sim)
	limits := elector.ForQoS(ask).Periods()
	for _, id := range w.Nodes() {
		if id != led {
			_, unmet := w.Tuning(id).Promise(ask, limits, w.View(led).Status.Period)
			require.NoError(t, unmet, "%s of %s", id, led)
		}
	}
	require.NoError(t, w.RunFor(long))
	require.Equal(t, led, leader(t, w.Sim))
	w.crashed, w.at = led, w.Now()
	require.NoError(t, w.Crash(led, sim.Crash{Silent: true}))
	require.NoError(t, w.RunFor(5*time.Second))
	require.NoError(t, w.Restart(led))
}

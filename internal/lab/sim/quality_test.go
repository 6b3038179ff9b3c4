package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// asking is a cluster of five that asks for a quality of service, with all timers that follow.
func asking(seed uint64, detect time.Duration, network sim.Faults) sim.Config {
	cfg := cluster(seed, 5)
	cfg.Network = network
	for i := range cfg.Nodes {
		e := &cfg.Nodes[i].Elector
		e.QoS = detector.QoS{Detect: detect, Mistakes: detector.Recurrence(24 * time.Hour),
			Accuracy: 0.99999}
		e.Timing = elector.ForQoS(e.QoS)
	}
	return cfg
}

// On links of any quality a silent crash is detected within the time that was asked for, and not
// much earlier; the leader is kept, and nobody suspects it by mistake. The worse the links, the
// shorter is the period of the heartbeats.
func TestQualityIsKeptOnAnyLink(t *testing.T) {
	for name, c := range map[string]struct {
		network         sim.Faults
		shortest, above float64 // period, as a part of the time to detect
	}{
		"quiet": {sim.Faults{Delay: ms}, 0.33, 0.34},
		"1 %":   {sim.Faults{Delay: ms, LossPPM: 10_000}, 0.23, 0.34},
		"10 %":  {sim.Faults{Delay: ms, LossPPM: 100_000}, 0.12, 0.17},
		"10 % and jitter": {
			sim.Faults{Delay: 10 * ms, Jitter: 10 * ms, LossPPM: 100_000}, 0.10, 0.17},
		"10 % and no order": {
			sim.Faults{Delay: 5 * ms, LossPPM: 100_000, ReorderPPM: 1e6, ExtraMax: 20 * ms}, 0.10, 0.17},
	} {
		for _, detect := range []time.Duration{200 * ms, time.Second} {
			t.Run(name+", "+detect.String(), func(t *testing.T) {
				cfg := asking(1, detect, c.network)
				var suspected []time.Duration
				cfg.Observer = func(e *sim.Event) {
					if e.Kind == sim.EventTransition && e.Transition.Reason == elector.LeaderNoHeartbeat {
						suspected = append(suspected, e.At)
					}
				}
				s := start(t, cfg)
				require.NoError(t, s.RunUntil(time.Minute)) // the links are known
				led := leader(t, s)
				suspected = nil
				require.NoError(t, s.RunUntil(10*time.Minute))
				require.Empty(t, suspected, "mistakes")
				require.Equal(t, led, leader(t, s))
				period := s.View(led).Status.Period
				require.GreaterOrEqual(t, float64(period), c.shortest*float64(detect))
				require.LessOrEqual(t, float64(period), c.above*float64(detect))

				crashed := s.Now()
				require.NoError(t, s.Crash(led, sim.Crash{Silent: true}))
				require.NoError(t, s.RunFor(2*detect))
				require.GreaterOrEqual(t, len(suspected), 3, "some may have heard of the next leader first")
				for _, at := range suspected {
					// The mean of a window varies by a part of the jitter.
					require.LessOrEqual(t, at-crashed, detect+2*ms)
					require.GreaterOrEqual(t, at-crashed, detect-3*period)
				}
				require.NotEqual(t, led, leader(t, s))
			})
		}
	}
}

// When a link gets worse the leader sends more often, and when the link has been well for long,
// less often. The time to detect its crash stays what was asked for.
func TestQualityFollowsTheNetwork(t *testing.T) {
	cfg := asking(3, 200*ms, sim.Faults{Delay: ms})
	s := start(t, cfg)
	require.NoError(t, s.RunUntil(time.Minute))
	led := leader(t, s)
	period := func() time.Duration { return s.View(led).Status.Period }
	change := func(f sim.Faults) {
		require.NoError(t, eachLink(s, led, func(from, to elector.NodeID) error {
			return s.SetFaults(from, to, f)
		}))
	}
	quiet := period()
	change(sim.Faults{Delay: 3 * ms, LossPPM: 50_000})
	require.NoError(t, s.RunFor(5*time.Minute))
	lossy := period()
	require.Less(t, lossy, quiet*2/3)
	for _, id := range s.Nodes() {
		if id != led {
			require.Equal(t, 197*ms, s.Tuning(id).Detection.Round(ms), "the delay counts")
		}
	}
	change(sim.Faults{Delay: ms})
	require.NoError(t, s.RunFor(time.Hour))
	require.Greater(t, period(), lossy*5/4)
	require.Equal(t, led, leader(t, s))
}

// A follower whose process was paused for longer than the time to detect a crash reads the
// heartbeats that wait for it before it judges its leader.
func TestAFollowerThatWasPausedKeepsItsLeader(t *testing.T) {
	for seed := range uint64(20) {
		cfg := asking(seed, 200*ms, sim.Faults{Delay: ms})
		suspected := count(&cfg, func(e *sim.Event) bool {
			return e.Kind == sim.EventTransition && e.Transition.Reason == elector.LeaderNoHeartbeat
		})
		s := start(t, cfg)
		require.NoError(t, s.RunUntil(10*time.Second))
		for _, id := range s.Nodes() {
			if id != leader(t, s) {
				require.NoError(t, s.Pause(id))
				require.NoError(t, s.RunFor(time.Second))
				require.NoError(t, s.Resume(id))
				require.NoError(t, s.RunFor(time.Second))
			}
		}
		require.Zero(t, *suspected, "seed %d", seed)
	}
}

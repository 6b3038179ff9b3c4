package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// eager is an established cluster whose nodes stand almost as soon as they may,
// so that a promise which ends too early is found out at once.
func eager(seed uint64, n int) sim.Config {
	cfg := cluster(seed, n)
	cfg.Begin = sim.Begin{Leader: "a", Term: 7}
	cfg.FsyncMax = time.Millisecond
	cfg.Redial = time.Millisecond
	for i := range cfg.Nodes {
		timing := &cfg.Nodes[i].Elector.Timing
		timing.MaxRandomWait = 50 * time.Millisecond
	}
	return cfg
}

func sever(t *testing.T, s *sim.Sim, a, b elector.NodeID) {
	require.NoError(t, s.Cut(a, b))
	require.NoError(t, s.Cut(b, a))
	require.NoError(t, s.Reset(a, b))
}

// TestPromiseOutlastsTheLeaseOfASlowClock: the voters' clocks are as fast,
// compared with the leader's, as the drift permits, and they lose it at once.
func TestPromiseOutlastsTheLeaseOfASlowClock(t *testing.T) {
	for seed := range uint64(100) {
		cfg := eager(seed, 3)
		cfg.Nodes[1].ClockRatePPM = cfg.Nodes[1].Elector.Timing.ClockDriftPPM
		cfg.Nodes[2].ClockRatePPM = cfg.Nodes[2].Elector.Timing.ClockDriftPPM
		s := start(t, cfg)
		require.NoError(t, s.RunFor(time.Duration(seed)*7*time.Millisecond))
		sever(t, s, "a", "b")
		sever(t, s, "a", "c")
		require.NoError(t, s.RunFor(5*time.Second))
		require.NotEqual(t, elector.NodeID("a"), leader(t, s))
	}
}

// TestVoterThatStartsKeepsThePromiseThatItForgot: d and e promised nothing and
// scout all the time; b supported the leader until it crashed. With its disk lost
// it does not even know that it started before.
func TestVoterThatStartsKeepsThePromiseThatItForgot(t *testing.T) {
	for name, wipe := range map[string]bool{"disk kept": false, "disk lost": true} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				s := start(t, eager(seed, 5))
				sever(t, s, "a", "d")
				sever(t, s, "a", "e")
				require.NoError(t, s.RunFor(5*time.Second+time.Duration(seed)*7*time.Millisecond))
				sever(t, s, "a", "b")
				require.NoError(t, s.Crash("b", sim.Crash{}))
				if wipe {
					require.NoError(t, s.Wipe("b"))
				}
				require.NoError(t, s.Restart("b"))
				require.NoError(t, s.RunFor(10*time.Second), "seed %d", seed)
				require.NotEqual(t, elector.NodeID("a"), leader(t, s))
			}
		})
	}
}

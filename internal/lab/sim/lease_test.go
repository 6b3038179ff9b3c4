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
	cfg := led(seed, n)
	cfg.FsyncMax, cfg.Redial = ms, ms
	for i := range cfg.Nodes {
		cfg.Nodes[i].Elector.Timing.MaxRandomWait = 50 * ms
	}
	return cfg
}

// TestPromiseOutlastsTheLeaseOfASlowClock: the voters' clocks are as fast,
// compared with the leader's, as the drift permits. Both lose their links to it at once.
func TestPromiseOutlastsTheLeaseOfASlowClock(t *testing.T) {
	for seed := range uint64(100) {
		cfg := eager(seed, 3)
		for i := range cfg.Nodes[1:] {
			cfg.Nodes[1+i].ClockRatePPM = cfg.Nodes[0].Elector.Timing.ClockDriftPPM
		}
		s := start(t, cfg)
		require.NoError(t, s.RunFor(time.Duration(seed)*7*ms))
		sever(t, s, "a", "b", "c")
		require.NoError(t, s.RunFor(5*time.Second))
		require.NotEqual(t, elector.NodeID("a"), leader(t, s))
	}
}

// TestVoterThatStartsKeepsThePromiseThatItForgot: d and e promised nothing and
// scout all the time; b supported the leader until b crashed. If b's disk is lost,
// b does not even know that it started before.
func TestVoterThatStartsKeepsThePromiseThatItForgot(t *testing.T) {
	for name, wipe := range map[string]bool{"disk kept": false, "disk lost": true} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				s := start(t, eager(seed, 5))
				sever(t, s, "a", "d", "e")
				require.NoError(t, s.RunFor(5*time.Second+time.Duration(seed)*7*ms))
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

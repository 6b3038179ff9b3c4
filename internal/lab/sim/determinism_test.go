package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestSameSeedSameBytes runs one schedule twice and compares the whole traces.
func TestSameSeedSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawCluster(t)
		schedule := rapid.SliceOfN(drawStep(names(len(cfg.Nodes)), everything), 1, 20).Draw(t, "schedule")
		require.Equal(t, traceOf(t, cfg, schedule), traceOf(t, cfg, schedule))
	})
}

func traceOf(t require.TestingT, cfg sim.Config, schedule []step) string {
	trace := record(&cfg)
	s, err := sim.New(cfg)
	require.NoError(t, err)
	require.NoError(t, s.RunFor(10*time.Second))
	require.NoError(t, play(s, schedule))
	return trace.String()
}

// TestOtherSeedOtherRun: the seed does reach everything that is random.
func TestOtherSeedOtherRun(t *testing.T) {
	require.NotEqual(t, traceOf(t, cluster(1, 3), nil), traceOf(t, cluster(2, 3), nil))
}

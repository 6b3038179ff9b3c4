package sim_test

import (
	"runtime"
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

// TestOtherSeedOtherRun: another seed gives another run.
func TestOtherSeedOtherRun(t *testing.T) {
	require.NotEqual(t, traceOf(t, cluster(1, 3), nil), traceOf(t, cluster(2, 3), nil))
}

// A long run holds no more than a short one: ten hours as much as one, except for
// what the runtime itself does beside the test.
func TestMemoryIsFlatInSimulatedTime(t *testing.T) {
	cfg := cluster(1, 5)
	sent := count(&cfg, func(e *sim.Event) bool { return e.Kind == sim.EventSent })
	s := start(t, cfg)
	require.NoError(t, s.RunUntil(time.Hour))
	after1 := held()
	require.NoError(t, s.RunUntil(10*time.Hour))
	after10 := held()
	const noise = 256 << 10 // ten hours send more than a million messages
	require.Less(t, int64(after10)-int64(after1), int64(noise))
	require.Greater(t, *sent, 500_000)
	runtime.KeepAlive(s)
}

// held is the memory in use, in bytes.
func held() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package sim_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

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

package replay

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// TestSoak plays SOAK_SEEDS seeds of every file, for at most SOAK_TIME.
func TestSoak(t *testing.T) {
	seeds, err := strconv.ParseUint(os.Getenv("SOAK_SEEDS"), 10, 32)
	if os.Getenv("SOAK_SEEDS") == "" {
		t.Skip("SOAK_SEEDS is not set: make soak sets it")
	}
	require.NoError(t, err, "SOAK_SEEDS is a number of seeds")
	limit := 10 * time.Minute
	if text := os.Getenv("SOAK_TIME"); text != "" {
		limit, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK_TIME is a duration, as in 10m")
	}
	soak(t, scenarios(t), seeds, time.Now().Add(limit))
}

// soak goes seed by seed, so that no file is left out when the time is up.
func soak(t *testing.T, all []*scenario.Scenario, seeds uint64, deadline time.Time) {
	var next, played atomic.Uint64
	var workers sync.WaitGroup
	total := seeds * uint64(len(all))
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < total && time.Now().Before(deadline); i = next.Add(1) - 1 {
				sc := all[i%uint64(len(all))]
				if wrong := failure(sc, sc.Seed+i/uint64(len(all))); wrong != "" {
					t.Errorf("%s: %s", sc.Name, wrong)
				}
				played.Add(1)
			}
		})
	}
	workers.Wait()
	t.Logf("%d of %d runs of %d files", played.Load(), total, len(all))
}

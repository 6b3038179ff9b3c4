package testkit

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Eight goroutines for each processor, which compute all the time, leave this one a ninth.
func TestALimitGrowsWithWhatElseRuns(t *testing.T) {
	require.GreaterOrEqual(t, Limit(time.Second), time.Second)
	var stop atomic.Bool
	for range 8 * runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() { // it only computes
			}
		}()
	}
	defer stop.Store(true)
	require.Greater(t, measure(), 2.0)
}

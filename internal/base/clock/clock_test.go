package clock_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

var clocks = map[string]func() clock.Clock{"system": clock.System, "process": clock.Process}

func TestClockIsPositiveAndNeverGoesBack(t *testing.T) {
	for name, open := range clocks {
		t.Run(name, func(t *testing.T) {
			c := open()
			last := c.Now()
			require.Positive(t, last)
			for range 10_000 {
				now := c.Now()
				require.GreaterOrEqual(t, now, last)
				last = now
			}
		})
	}
}

func TestClockCountsRealNanoseconds(t *testing.T) {
	for name, open := range clocks {
		t.Run(name, func(t *testing.T) {
			c := open()
			outer := time.Now()
			first := c.Now()
			inner := time.Now()
			require.Eventually(t, func() bool { return c.Now()-first >= 20*time.Millisecond },
				testkit.Limit(10*time.Second), time.Millisecond)
			atLeast := time.Since(inner)
			elapsed := c.Now() - first
			atMost := time.Since(outer)
			// 2 % is the drift that the protocol allows between two clocks.
			require.GreaterOrEqual(t, elapsed, atLeast*98/100)
			require.LessOrEqual(t, elapsed, atMost*102/100)
		})
	}
}

func TestSystemCountsSinceBootOnLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has CLOCK_BOOTTIME")
	}
	require.NotEqual(t, clock.Process(), clock.System())
	require.Greater(t, clock.System().Now(), time.Second, "the machine booted before this test")
}

func TestProcessFollowsVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Process()
		require.Equal(t, time.Duration(1), c.Now())
		time.Sleep(time.Hour)
		require.Equal(t, 1+time.Hour, c.Now())
	})
}

func TestClockAllocatesNothing(t *testing.T) {
	for name, open := range clocks {
		c := open()
		require.Zero(t, testing.AllocsPerRun(100, func() { c.Now() }), name)
	}
}

func BenchmarkNow(b *testing.B) {
	for name, open := range clocks {
		b.Run(name, func(b *testing.B) {
			c := open()
			b.ReportAllocs()
			for b.Loop() {
				c.Now()
			}
		})
	}
}

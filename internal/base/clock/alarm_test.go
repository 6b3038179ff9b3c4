package clock_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestAlarmRingsAtItsMoment(t *testing.T) {
	for name, open := range clocks {
		t.Run(name, func(t *testing.T) {
			c := open()
			a := clock.NewAlarm(c)
			defer a.Close()
			for _, ahead := range []time.Duration{20 * time.Millisecond, 0, -time.Second} {
				a.Set(clock.Never)
				at := c.Now() + ahead
				a.Set(at)
				select {
				case <-a.Rings():
				case <-time.After(testkit.Limit(20 * time.Second)):
					require.Fail(t, "it does not ring", ahead)
				}
				require.GreaterOrEqual(t, c.Now(), at)
			}
			a.Set(c.Now() + time.Hour)
			select {
			case <-a.Rings():
				require.Fail(t, "it rings an hour too early")
			case <-time.After(20 * time.Millisecond):
			}
		})
	}
}

func TestAlarmFollowsVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := clock.NewAlarm(clock.Process())
		defer a.Close()
		began := time.Now()
		a.Set(1 + time.Hour)
		<-a.Rings()
		require.Equal(t, time.Hour, time.Since(began))
	})
}

// A timer of CLOCK_BOOTTIME, number 7, counts the time for which the machine sleeps. The
// kernel says which clock a timer has.
func TestAlarmOfTheSystemCountsSleepOnLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has such timers")
	}
	before := openTimers(t)
	a := clock.NewAlarm(clock.System())
	require.Equal(t, before+1, openTimers(t))
	a.Close()
	require.Eventually(t, func() bool { return openTimers(t) == before },
		testkit.Limit(10*time.Second), time.Millisecond)
}

// openTimers is how many timers of CLOCK_BOOTTIME this process has.
func openTimers(t *testing.T) (count int) {
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	require.NoError(t, err)
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may be closed by now
		count += strings.Count(string(text), "clockid: 7\n")
	}
	return count
}

package clock

import (
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/elector"
)

// boot reads CLOCK_BOOTTIME.
type boot struct{}

// boottime probes the clock once: a sandbox may forbid it.
func boottime() (Clock, bool) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return boot{}, err == nil
}

// Now panics if a clock that worked when it was probed is gone: to go on
// without time would be to lead without a lease.
func (boot) Now() elector.Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock: CLOCK_BOOTTIME failed after it had worked: " + err.Error())
	}
	return elector.Time(ts.Nano())
}

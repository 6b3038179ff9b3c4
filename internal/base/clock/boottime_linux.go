package clock

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/base/rawcall"
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
func (boot) Now() time.Duration {
	var ts unix.Timespec
	if err := rawcall.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock: CLOCK_BOOTTIME failed after it had worked: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

type sleepless struct{ *BootAlarm }

// bootAlarm makes alarms only for the clock boot, and only if no sandbox forbids them.
func bootAlarm(c Clock) (Alarm, bool) {
	if _, counts := c.(boot); !counts {
		return nil, false
	}
	a, err := NewBootAlarm()
	return sleepless{a}, err == nil
}

// Set panics if an alarm that was made cannot be set: nothing else would end a
// leadership in time.
func (a sleepless) Set(at time.Duration) {
	if err := a.BootAlarm.Set(at); err != nil {
		panic("clock: " + err.Error())
	}
}

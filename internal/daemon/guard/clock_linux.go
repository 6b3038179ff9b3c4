package guard

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// moment is a time of CLOCK_BOOTTIME in nanoseconds: the clock of the whole machine,
// which goes on while it sleeps.
type moment int64

const never = moment(clock.Never)

// clockNow fails where a sandbox forbids the clock.
func clockNow() (moment, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return moment(ts.Nano()), nil
}

// after is m later by d; never stays never.
func (m moment) after(d time.Duration) moment {
	if m == never {
		return never
	}
	return m + moment(d)
}

// momentOf is a deadline by the machine's clock. That is read first: what happens
// until the deadline is known makes it earlier, never later.
func momentOf(deadline func() time.Time) (moment, error) {
	now, err := clockNow()
	if err != nil {
		return 0, err
	}
	at := deadline()
	if at.IsZero() {
		return never, nil
	}
	return now.after(time.Until(at)), nil
}

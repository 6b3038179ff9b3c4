package guard

import (
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// moment is a time of CLOCK_BOOTTIME in nanoseconds: the clock of the whole machine,
// which goes on while it sleeps.
type moment int64

const never moment = math.MaxInt64

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

// alarm tells when a moment has come, however long the machine slept before it.
type alarm struct {
	fd    int
	file  *os.File
	rings chan struct{} // has an element once the moment has come
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	a := &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timer"), rings: make(chan struct{}, 1)}
	go a.run()
	return a, nil
}

// run ends when the alarm is closed.
func (a *alarm) run() {
	times := make([]byte, 8)
	for {
		if _, err := a.file.Read(times); err != nil {
			return
		}
		select {
		case a.rings <- struct{}{}:
		default:
		}
	}
}

// set replaces the moment; one that has passed has come.
func (a *alarm) set(at moment) error {
	var spec unix.ItimerSpec // all zero: it never rings
	if at != never {
		spec.Value = unix.NsecToTimespec(int64(max(at, 1)))
	}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	return nil
}

func (a *alarm) close() { a.file.Close() }

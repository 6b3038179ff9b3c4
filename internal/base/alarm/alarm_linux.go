package alarm

import (
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Never is a moment that does not come.
const Never = math.MaxInt64

// Alarm rings when its moment has come. Set and Close are safe for concurrent use.
type Alarm struct {
	fd    int
	file  *os.File
	rings chan time.Time
}

// New returns an alarm that is not set. Linux alone has such alarms, and a sandbox may
// forbid them: that is the error. Close it after use.
func New() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	a := &Alarm{fd: fd, file: os.NewFile(uintptr(fd), "timer"), rings: make(chan time.Time, 1)}
	go a.run()
	return a, nil
}

// run ends when the alarm is closed.
func (a *Alarm) run() {
	times := make([]byte, 8)
	for {
		if _, err := a.file.Read(times); err != nil {
			return
		}
		select {
		case a.rings <- time.Now():
		default:
		}
	}
}

// Rings has an element once the moment has come.
func (a *Alarm) Rings() <-chan time.Time { return a.rings }

// Set replaces the moment, in nanoseconds of CLOCK_BOOTTIME; one that has passed has
// come.
func (a *Alarm) Set(at int64) error {
	var spec unix.ItimerSpec // all zero: it never rings
	if at != Never {
		spec.Value = unix.NsecToTimespec(max(at, 1))
	}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	return nil
}

// Close ends the alarm; it does not ring any more.
func (a *Alarm) Close() { _ = a.file.Close() }

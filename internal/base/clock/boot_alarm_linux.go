package clock

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/base/rawcall"
)

// BootAlarm rings at a moment of CLOCK_BOOTTIME, which goes on while the machine sleeps:
// Go's own timers do not, and ring as much too late. Its methods are safe for concurrent
// use.
type BootAlarm struct {
	fd    int
	file  *os.File
	rings chan time.Time
}

// NewBootAlarm returns an alarm that is not set. Linux alone has such alarms, and a sandbox may
// forbid them: that is the error. Close it after use.
func NewBootAlarm() (*BootAlarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	a := &BootAlarm{fd: fd, file: os.NewFile(uintptr(fd), "timer"), rings: make(chan time.Time, 1)}
	go a.run()
	return a, nil
}

// run ends when the alarm is closed.
func (a *BootAlarm) run() {
	times := make([]byte, 8)
	raw, err := a.file.SyscallConn()
	if err != nil {
		return // it is closed already
	}
	read := func(fd uintptr) bool {
		_, err := rawcall.Read(fd, times)
		return err == nil
	}
	for {
		if err := raw.Read(read); err != nil {
			return
		}
		select {
		case a.rings <- time.Now():
		default:
		}
	}
}

// Rings has an element once the moment has come.
func (a *BootAlarm) Rings() <-chan time.Time { return a.rings }

// Set replaces the moment of CLOCK_BOOTTIME; one that has passed has come.
func (a *BootAlarm) Set(at time.Duration) error {
	var spec unix.ItimerSpec // all zero: it never rings
	if at != Never {
		spec.Value = unix.NsecToTimespec(max(int64(at), 1))
	}
	if err := rawcall.TimerfdSettime(a.fd, &spec); err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	return nil
}

// Close ends the alarm; it does not ring any more.
func (a *BootAlarm) Close() { _ = a.file.Close() }

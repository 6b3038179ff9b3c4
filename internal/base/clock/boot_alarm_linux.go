package clock

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/base/rawcall"
)

// BootAlarm rings at a moment of CLOCK_BOOTTIME, which goes on while the machine sleeps:
// Go's own timers do not, and ring as much too late. Its methods are safe for concurrent
// use.
type BootAlarm struct {
	file  *os.File
	raw   syscall.RawConn
	rings chan time.Time

	mu   sync.Mutex // of the setting under way
	spec unix.ItimerSpec
	err  error
	set  func(fd uintptr) // made once: it would take memory
}

// NewBootAlarm returns an alarm that is not set. Only Linux has such alarms, and a sandbox may
// forbid them: then there is an error. Close the alarm after use.
func NewBootAlarm() (*BootAlarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	a := &BootAlarm{file: os.NewFile(uintptr(fd), "timer"), rings: make(chan time.Time, 1)}
	a.set = func(fd uintptr) { a.err = rawcall.TimerfdSettime(int(fd), &a.spec) }
	if a.raw, err = a.file.SyscallConn(); err != nil {
		return nil, err // never: it is open
	}
	go a.run()
	return a, nil
}

// run ends when the alarm is closed.
func (a *BootAlarm) run() {
	times := make([]byte, 8)
	read := func(fd uintptr) bool {
		_, err := rawcall.Read(fd, times)
		return err == nil
	}
	for {
		if err := a.raw.Read(read); err != nil {
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

// Set replaces the moment of CLOCK_BOOTTIME; one that has passed has come. It does nothing after
// Close.
func (a *BootAlarm) Set(at time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spec = unix.ItimerSpec{} // all zero: it never rings
	if at != Never {
		a.spec.Value = unix.NsecToTimespec(max(int64(at), 1))
	}
	if err := a.raw.Control(a.set); err != nil {
		return nil // it is closed: another file may have its number by now
	}
	if a.err != nil {
		return fmt.Errorf("set a timer: %w", a.err)
	}
	return nil
}

// Close ends the alarm; it does not ring any more.
func (a *BootAlarm) Close() { _ = a.file.Close() }

package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// moment is a time of CLOCK_BOOTTIME in nanoseconds. All processes of the machine share this clock,
// and it goes on while the machine sleeps.
type moment int64

const never = moment(clock.Never)

// probeClock fails where a sandbox forbids CLOCK_BOOTTIME.
func probeClock() error {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return nil
}

// clockNow panics if the clock fails although probeClock could read it: without time nothing can be
// promised, and the end of an owner or of a supervisor ends the command.
func clockNow() moment {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("supervisor: CLOCK_BOOTTIME failed after it had worked: " + err.Error())
	}
	return moment(ts.Nano())
}

// after adds d; never stays never.
func (m moment) after(d time.Duration) moment {
	if m == never {
		return never
	}
	return m + moment(d)
}

// momentOf is a deadline by the machine's clock. It reads the clock first: a delay makes the
// deadline earlier, never later.
func momentOf(deadline func() time.Time) moment {
	now, at := clockNow(), deadline()
	if at.IsZero() {
		return never
	}
	return now.after(time.Until(at))
}

// process is what the kernel knows of a process.
type process struct {
	pid, parent, session int
	state                byte
}

// dead reports whether the process only waits to be reaped by its parent.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

func (p process) descendsFrom(ancestor int) bool {
	for p.parent != ancestor {
		if p.parent <= 1 {
			return false
		}
		up, err := look(p.parent)
		if err != nil { // the parent has ended, and p has another one now
			up, err = look(p.pid)
		}
		if err != nil {
			return false
		}
		p = up
	}
	return true
}

// signalWhere signals every process that is meant, and returns how many there are.
func signalWhere(meant func(process) bool, sig unix.Signal) (count int) {
	entries, _ := os.ReadDir("/proc") // an error leaves out some processes
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := look(pid); err == nil && meant(p) {
			count++
			_ = unix.Kill(pid, sig)
		}
	}
	return count
}

// look reads the state, the parent and the session of a process. It reads status, not stat: Linux
// lets the reader of stat wait while a process is stuck in exec, for instance closing a file on a
// disk that hangs. One such process on the machine would keep every command from its end.
func look(pid int) (process, error) {
	p := process{pid: pid}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return p, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch name {
		case "State":
			p.state = value[0]
		case "PPid":
			if p.parent, err = strconv.Atoi(value); err != nil {
				return p, fmt.Errorf("parent of process %d: %w", pid, err)
			}
		}
	}
	if p.state == 0 {
		return p, fmt.Errorf("process %d: its status has no state: %.100q", pid, status)
	}
	p.session, err = unix.Getsid(pid)
	return p, err
}

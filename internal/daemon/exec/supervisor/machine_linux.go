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

// moment is a time of CLOCK_BOOTTIME in nanoseconds: the clock of the whole machine,
// which goes on while it sleeps.
type moment int64

const never = moment(clock.Never)

// probeClock fails where a sandbox forbids the clock.
func probeClock() error {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return nil
}

// clockNow panics if a clock that probeClock could read is gone: without time nothing can be
// promised, and the end of an owner or a supervisor ends the command.
func clockNow() moment {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("supervisor: CLOCK_BOOTTIME failed after it had worked: " + err.Error())
	}
	return moment(ts.Nano())
}

// after is m later by d; never stays never.
func (m moment) after(d time.Duration) moment {
	if m == never {
		return never
	}
	return m + moment(d)
}

// momentOf is a deadline by the machine's clock. It reads the clock first: time that passes
// until the deadline is known makes it earlier, never later.
func momentOf(deadline func() time.Time) moment {
	now, at := clockNow(), deadline()
	if at.IsZero() {
		return never
	}
	return now.after(time.Until(at))
}

// process is what the kernel tells of one.
type process struct {
	pid, parent, session int
	state                byte
}

// dead reports whether it only waits to be reaped by its parent.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

// descendsFrom reports whether a process is a child of another, or a child's child, and so on.
func (p process) descendsFrom(ancestor int) bool {
	for p.parent != ancestor {
		if p.parent <= 1 {
			return false
		}
		up, err := look(p.parent)
		if err != nil { // it has ended since, and p has another parent
			up, err = look(p.pid)
		}
		if err != nil {
			return false
		}
		p = up
	}
	return true
}

// signalWhere signals every process that is meant, and reports how many those are.
func signalWhere(meant func(process) bool, sig unix.Signal) (count int) {
	entries, _ := os.ReadDir("/proc") // as much as can be read
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

// look reads what the kernel tells of a process. It does not read its stat: Linux lets whoever
// reads that wait for a process that is stuck in exec, for instance as it closes a file on a disk
// that hangs, and one such process on the machine would keep every command from its end.
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

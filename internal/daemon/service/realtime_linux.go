package service

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// RealTime lets every thread of this process, and those that they start, run before all
// ordinary processes: SCHED_RR at its lowest priority. Children inherit it. Where that is not
// permitted it says what would permit it, and the process goes on.
func RealTime(warnings io.Writer) {
	if err := realTime(); err != nil {
		fmt.Fprintln(warnings, "bmqnode: goes on without --realtime:", err)
	}
}

func realTime() error {
	done := map[int]bool{}
	for before := -1; before != len(done); { // until no thread was started meanwhile
		before = len(done)
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, entry := range threads {
			id, err := strconv.Atoi(entry.Name())
			if err == nil && !done[id] {
				err = unix.SchedSetAttr(id, &unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1}, 0)
			}
			if err != nil && err != unix.ESRCH {
				return fmt.Errorf("%w: it needs CAP_SYS_NICE or a limit (ulimit -r 1); under "+
					"systemd, CPUSchedulingPolicy=rr", err)
			}
			done[id] = true
		}
	}
	return nil
}

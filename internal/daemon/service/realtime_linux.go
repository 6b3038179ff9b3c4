package service

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// RealTime lets all threads of this process, and their children, run before all ordinary processes:
// SCHED_RR at its lowest priority. Where that is not permitted, it warns and says what would permit
// it.
func RealTime(warnings io.Writer) {
	if err := realTime(); err != nil {
		fmt.Fprintln(warnings, "bmqnode: goes on without --realtime:", err)
	}
}

func realTime() error {
	done := map[int]bool{}
	for before := -1; before != len(done); { // until no new thread was found
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

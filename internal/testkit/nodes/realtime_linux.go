package nodes

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// MayBeRealTime reports whether processes may have real-time scheduling here.
var MayBeRealTime = sync.OnceValue(func() bool {
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // and never unlocks it: the thread ends with the goroutine
		rr := unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1}
		done <- unix.SchedSetAttr(0, &rr, 0) == nil
	}()
	return <-done
})

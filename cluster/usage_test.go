//go:build unix

package cluster

import (
	"syscall"
	"time"
)

// usage is what this process has used of the machine.
type usage struct {
	cpu   time.Duration
	waits int64 // times that a thread went to sleep of its own will; each is woken again
}

func measureUsage() usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return usage{time.Duration(r.Utime.Nano() + r.Stime.Nano()), r.Nvcsw}
}

func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu,
		u.waits - before.waits}
}

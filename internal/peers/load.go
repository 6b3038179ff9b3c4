package main

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// busyPerCore is the number of busy processes for each core.
const busyPerCore = 2

// underLoad counts how often a node comes to lead while other processes want all cores.
func underLoad(ctx context.Context, s system, dir string, lasts time.Duration) (changes int,
	err error) {
	progress("%s: load, %s", s.name, lasts)
	c, err := launch(ctx, s, dir, 0)
	if err != nil {
		return 0, err
	}
	defer c.close()
	for range busyPerCore * runtime.NumCPU() {
		busy, err := compute()
		if err != nil {
			return 0, err
		}
		defer busy.kill()
	}
	before := c.changes
	err = c.pause(ctx, lasts)
	progress("%s: %d changes of the leader under load", s.name, c.changes-before)
	return c.changes - before, err
}

// compute starts a process that takes all the CPU time it gets.
func compute() (*process, error) {
	busy := &process{cmd: exec.Command("sh", "-c", "while :; do :; done")}
	busy.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return busy, busy.cmd.Start()
}

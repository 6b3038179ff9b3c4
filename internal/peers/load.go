package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// asBusy is the first argument of this program when it is to use a core for the time
// that follows.
const asBusy = "busy"

// busyPerCore is how many busy processes there are for each core.
const busyPerCore = 2

// underLoad counts how often a node comes to lead while other processes want all cores.
func underLoad(ctx context.Context, c *cluster, lasts time.Duration) (changes int, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if err := c.settle(ctx); err != nil {
		return 0, err
	}
	for range busyPerCore * runtime.NumCPU() {
		busy := exec.Command(program, asBusy, lasts.String())
		busy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := busy.Start(); err != nil {
			return 0, err
		}
		defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	}
	before := c.changes
	err = c.pause(ctx, lasts)
	return c.changes - before, err
}

// spin uses a core.
func spin(lasts string) error {
	d, err := time.ParseDuration(lasts)
	if err != nil {
		return fmt.Errorf("how long to be busy: %w", err)
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// costs is what a cluster at rest takes, per node that runs.
type costs struct {
	cpu     float64 // of one core, in percent
	most    float64 // the same of the node that takes most of it
	wakes   float64 // how often a thread was woken, per second
	memory  float64 // resident set size, in MiB
	traffic bool    // bytes and packets were measured
	bytes   float64 // sent, per second, with headers
	packets float64 // sent, per second
}

// costs measures a cluster that has a leader for the given time, after a fifth of that to calm
// down. traffic says that nothing else uses the network.
func (c *cluster) costs(ctx context.Context, lasts time.Duration, traffic bool) (costs, error) {
	if err := c.pause(ctx, lasts/5); err != nil {
		return costs{}, err
	}
	before, err := c.usage()
	if err != nil {
		return costs{}, err
	}
	began := time.Now()
	if err := c.pause(ctx, lasts); err != nil {
		return costs{}, err
	}
	after, err := c.usage()
	seconds := time.Since(began).Seconds()
	var cpu, most time.Duration
	for i := range after.cpu {
		took := after.cpu[i] - before.cpu[i]
		cpu, most = cpu+took, max(most, took)
	}
	nodes := float64(len(after.cpu))
	perNode := func(before, after uint64) float64 {
		return float64(after-before) / seconds / nodes
	}
	return costs{
		cpu:     100 * cpu.Seconds() / seconds / nodes,
		most:    100 * most.Seconds() / seconds,
		wakes:   perNode(before.wakes, after.wakes),
		memory:  float64(after.memory) / (1 << 20) / nodes,
		traffic: traffic,
		bytes:   perNode(before.bytes, after.bytes),
		packets: perNode(before.packets, after.packets),
	}, err
}

// usage is what all nodes have used so far.
type usage struct {
	cpu            []time.Duration // of each node
	wakes          uint64
	memory         uint64 // in bytes, at the moment
	bytes, packets uint64 // sent
}

func (c *cluster) usage() (u usage, err error) {
	for _, i := range c.running() {
		pid := c.processes[i].cmd.Process.Pid
		cpu, err := cpuTime(pid)
		if err != nil {
			return u, err
		}
		memory, wakes, err := memoryAndWakes(pid)
		if err != nil {
			return u, err
		}
		u.cpu, u.wakes, u.memory = append(u.cpu, cpu), u.wakes+wakes, u.memory+memory
	}
	files, err := procfs.NewDefaultFS()
	if err != nil {
		return u, err
	}
	sent, err := files.NetDev() // over loopback, where each packet is received once, too
	u.bytes, u.packets = sent["lo"].TxBytes, sent["lo"].TxPackets
	return u, err
}

// cpuTime is the time of a process in user and kernel mode, by its CPU clock. /proc/PID/stat
// has the same time in units of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	clock := int32(^pid<<3 | 2) // see clock_getcpuclockid(3): 2 is the scheduler's time
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// memoryAndWakes are the resident set size of a process, in bytes, and how often its threads have
// slept and were woken. The code that it shares with the other nodes counts in full: elsewhere,
// each node has a machine of its own.
func memoryAndWakes(pid int) (memory, wakes uint64, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	mapped, err := p.ProcSMapsRollup()
	if err != nil {
		return 0, 0, err
	}
	threads, err := procfs.AllThreads(pid)
	for _, thread := range threads {
		status, err := thread.NewStatus()
		if err != nil {
			return 0, 0, err
		}
		wakes += status.VoluntaryCtxtSwitches
	}
	return mapped.Rss, wakes, err
}

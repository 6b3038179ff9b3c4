package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// costs are those of a cluster at rest, per node.
type costs struct {
	cpu     float64 // of one core, in percent
	most    float64 // the same of the node that takes most of it
	wakes   float64 // how often a thread was woken, per second
	memory  float64 // resident set size, in MiB
	traffic bool    // whether what follows was measured
	bytes   float64 // sent, per second, with headers
	packets float64 // sent, per second
}

// measure watches a cluster that has a leader for the given time, after a fifth of that
// to calm down. If nothing else uses the network, traffic is measured, too.
func measure(ctx context.Context, c *cluster, lasts time.Duration, traffic bool) (costs, error) {
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
	if err != nil {
		return costs{}, err
	}
	seconds := time.Since(began).Seconds()
	nodeSeconds := seconds * float64(c.nodes)
	var cpu, most time.Duration
	for i := range after.cpu {
		took := after.cpu[i] - before.cpu[i]
		cpu, most = cpu+took, max(most, took)
	}
	return costs{
		cpu:     100 * cpu.Seconds() / nodeSeconds,
		most:    100 * most.Seconds() / seconds,
		wakes:   float64(after.wakes-before.wakes) / nodeSeconds,
		memory:  float64(after.memory) / (1 << 20) / float64(c.nodes),
		traffic: traffic,
		bytes:   float64(after.bytes-before.bytes) / nodeSeconds,
		packets: float64(after.packets-before.packets) / nodeSeconds,
	}, nil
}

// usage is what all nodes have used so far.
type usage struct {
	cpu                           []time.Duration // of each node
	wakes, memory, bytes, packets uint64
}

func (c *cluster) usage() (u usage, err error) {
	for _, p := range c.processes {
		pid := p.cmd.Process.Pid
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

// cpuTime is that of a process, in user and kernel mode, by its CPU clock: like
// /proc/PID/stat, but not in units of 10 ms.
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

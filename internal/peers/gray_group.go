package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// groupPrefix begins the names of our control groups.
const groupPrefix = "bmqelect-gray-"

const groups = "/sys/fs/cgroup"

// group is a control group for CPU time and memory, of version 2 or 1.
type group struct {
	unified     bool
	cpu, memory string // directories; with version 2 they are one
}

func newGroup(name string) (*group, error) {
	g := &group{cpu: filepath.Join(groups, "cpu", name), memory: filepath.Join(groups, "memory", name)}
	if all, err := os.ReadFile(filepath.Join(groups, "cgroup.controllers")); err == nil {
		for _, c := range []string{"cpu", "memory"} {
			if !bytes.Contains(all, []byte(c)) {
				return nil, fmt.Errorf("the control groups of this machine have no %s", c)
			}
		}
		g.unified, g.cpu, g.memory = true, filepath.Join(groups, name), filepath.Join(groups, name)
		if err := write(groups, "cgroup.subtree_control", "+cpu +memory"); err != nil {
			return nil, err
		}
	}
	for _, dir := range g.dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			g.remove()
			return nil, err
		}
	}
	return g, nil
}

func (g *group) dirs() []string {
	if g.unified {
		return []string{g.cpu}
	}
	return []string{g.cpu, g.memory}
}

func (g *group) remove() {
	for _, dir := range g.dirs() {
		_ = os.Remove(dir)
	}
}

// removeGroups removes those that a run which was killed has left.
func removeGroups() {
	for _, pattern := range []string{groupPrefix + "*", "*/" + groupPrefix + "*"} {
		old, _ := filepath.Glob(filepath.Join(groups, pattern)) // the pattern is right
		for _, dir := range old {
			_ = os.Remove(dir) // fails while a process is in it
		}
	}
}

// enter is the beginning of a command that is to run in the group. The file has to be a copy of the
// program: the memory of a file's pages is that of the group which has read them first.
func (g *group) enter(copied string) []string {
	script := ""
	for _, dir := range g.dirs() {
		script += "echo $$ >" + dir + "/cgroup.procs && "
	}
	script += `copied=$1 && cp "$2" "$copied" && shift 2 && exec "$copied" "$@"`
	return []string{"sh", "-c", script, "sh", copied}
}

func write(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644)
}

// limitCPU gives the group that part of a core, in percent, and another process in it that takes
// what it gets.
func (g *group) limitCPU(percent int) (end func(), err error) {
	const period = 100_000 // microseconds, the default of both versions
	quota, file := strconv.Itoa(period*percent/100), "cpu.cfs_quota_us"
	if g.unified {
		file = "cpu.max"
	}
	if err := write(g.cpu, file, quota); err != nil {
		return nil, err
	}
	busy, err := compute()
	if err != nil {
		return nil, err
	}
	return busy.kill, write(g.cpu, "cgroup.procs", strconv.Itoa(busy.cmd.Process.Pid))
}

// spare is what a process has left beside the memory that is its own: too little for its code.
const spare = 6 << 20

// limitMemory leaves a process of the group the memory that no file backs, and little more. What
// it maps from files, such as its code, has to be read again and again, and where that is not
// enough it waits: the kernel does not kill it.
func (g *group) limitMemory(pid int) (end func(), err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return nil, err
	}
	file, none := "memory.high", "max"
	if !g.unified {
		file, none = "memory.limit_in_bytes", "-1"
		if err := write(g.memory, "memory.oom_control", "1"); err != nil {
			return nil, err
		}
	}
	end = func() { _ = write(g.memory, file, none) }
	for limit := status.RssAnon + spare; ; limit += 1 << 20 {
		err = write(g.memory, file, strconv.FormatUint(limit, 10))
		if !errors.Is(err, unix.EBUSY) { // version 1: the kernel itself needs more
			return end, err
		}
	}
}

package kerneltest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// deny lets a process open no more descriptors, until the returned function is called.
func (r *rig) deny(v *voter) (restore func()) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", v.cmd.Process.Pid))
	if err != nil {
		return func() {} // it has just ended
	}
	var old unix.Rlimit
	pid := v.cmd.Process.Pid
	if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old) != nil {
		return func() {}
	}
	few := unix.Rlimit{Cur: uint64(len(open)), Max: old.Max}
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil) // as above
	return func() { _ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil) }
}

// starve lets a process map no more memory: it ends when it needs more.
func (r *rig) starve(v *voter) {
	r.noteEnd(v)
	few := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	_ = unix.Prlimit(v.cmd.Process.Pid, unix.RLIMIT_AS, &few, nil)
	r.tell(v, "eat")
}

// killStorm kills one voter after another, and starts it again at once.
func (r *rig) killStorm(times int) {
	for range times {
		v := r.voters[r.rng.IntN(len(r.voters))]
		r.kill(v)
		r.start(v)
		time.Sleep(time.Duration(r.rng.Int64N(int64(100 * time.Millisecond))))
	}
}

// stopStorm stops one voter after another for a moment.
func (r *rig) stopStorm(times int) {
	for range times {
		v := r.voters[r.rng.IntN(len(r.voters))]
		r.signal(syscall.SIGSTOP, v)
		time.Sleep(time.Duration(r.rng.Int64N(int64(40 * time.Millisecond))))
		r.signal(syscall.SIGCONT, v)
	}
}

// failure is a fault that may end a node.
type failure struct {
	name  string
	brief bool // it is part of every run of the tests, at the leader
	start start
	do    func(r *rig, v *voter)
	undo  func(r *rig, v *voter) // nil for a storm, which befalls all and is over at once
}

// start is what happens to a process that is started during the failure.
type start int

const (
	noStart start = iota // none is
	mayStart
	cannotStart
)

func failures() []failure {
	renewDisk := func(r *rig, v *voter) {
		r.kill(v)
		v.disk.detach()
		v.disk.attach()
	}
	restore := map[*voter]func(){}
	return []failure{
		{"disk full", true, mayStart, func(_ *rig, v *voter) { v.disk.fill() },
			func(_ *rig, v *voter) { v.disk.empty() }},
		{"disk read-only", false, cannotStart, func(_ *rig, v *voter) { v.disk.protect() }, renewDisk},
		{"disk hangs", true, cannotStart, func(_ *rig, v *voter) { v.disk.hang() },
			func(_ *rig, v *voter) { v.disk.goOn() }},
		{"disk gone", false, cannotStart, func(_ *rig, v *voter) { v.disk.pull() }, renewDisk},
		{"no descriptors", false, noStart, func(r *rig, v *voter) { restore[v] = r.deny(v) },
			func(_ *rig, v *voter) { restore[v]() }},
		{"no address space", false, noStart, (*rig).starve, func(r *rig, v *voter) { r.kill(v) }},
		{"SIGKILL storm", false, noStart, func(r *rig, _ *voter) { r.killStorm(20) }, nil},
		{"SIGSTOP storm", true, noStart, func(r *rig, _ *voter) { r.stopStorm(100) }, nil},
	}
}

// TestNodesThatFailHarmNobody exposes the leader, or two followers, to each failure. There is
// never a second leader, and all follow one when the failure is over.
func TestNodesThatFailHarmNobody(t *testing.T) {
	t.Parallel()
	r := onDisks(t, build(t, seed(t), brisk()))
	r.start(r.voters...)
	table := &table{head: "failure\tof"}
	for _, f := range failures() {
		for _, victims := range []string{"leader", "two followers"} {
			atLeader := victims == "leader"
			if rounds == 0 && !(f.brief && atLeader) || f.undo == nil && !atLeader {
				continue
			}
			for range max(rounds/4, 1) {
				table.add(r.fail(f, atLeader), f.name+"\t"+victims)
			}
		}
	}
	t.Log(table)
	for name, row := range table.rows {
		require.Empty(t, row.wrong(), name)
	}
}

// startFailing restarts processes during a failure. Those that need a failed disk do not start.
func (r *rig) startFailing(f failure, victims []*voter) {
	r.mu.Lock()
	failures := 0
	for _, rec := range r.records {
		if rec.Kind == failed {
			failures++
		}
	}
	r.mu.Unlock()
	r.kill(victims...)
	lives := func(v *voter) int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.lives[v.name])
	}
	before := map[*voter]int{}
	for _, v := range victims {
		before[v] = lives(v)
		if f.name == "disk hangs" {
			v.disk.hang() // it went on so that the process could end
		}
	}
	r.start(victims...)
	time.Sleep(time.Second)
	up := 0
	for _, v := range victims {
		up += lives(v) - before[v]
	}
	r.t.Logf("%s: %d nodes failed so far; of %d that were started on it %d came up", f.name,
		failures, len(victims), up)
	if f.start == cannotStart {
		require.Zero(r.t, up, f.name)
	}
}

// fail is one trial.
func (r *rig) fail(f failure, atLeader bool) verdict {
	leader, others := r.settle(30 * time.Second)
	began, victims := now(), []*voter{leader}
	if !atLeader {
		victims = others[:2]
	}
	for _, v := range victims {
		defer r.mayEnd(v)()
		f.do(r, v)
	}
	r.tell(leader, "stepdown") // an election writes to the disks
	time.Sleep(brisk().Lease + 2*brisk().InitialWait)
	if f.start != noStart {
		r.startFailing(f, victims)
	}
	for _, v := range victims {
		if f.undo != nil {
			f.undo(r, v)
		}
	}
	r.restart()
	r.start(r.voters...)
	r.settle(30 * time.Second)
	return r.judge(began)
}

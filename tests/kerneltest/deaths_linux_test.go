package kerneltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// brisk starts and elects within a second.
func brisk() elector.Timing {
	t := example()
	t.HeartbeatBroadcast, t.HeartbeatMissCount, t.Lease = 50*time.Millisecond, 10, 500*time.Millisecond
	t.InitialWait, t.MaxRandomWait = 550*time.Millisecond, 100*time.Millisecond
	return t
}

// death is a way to end a voter's program.
type death struct {
	name   string
	before func(r *rig, v *voter, others []*voter) // nothing, if nil
	do     func(r *rig, v *voter)
}

func sigkill(r *rig, v *voter) { r.signal(syscall.SIGKILL, v) }

func order(what string) func(*rig, *voter) { return func(r *rig, v *voter) { r.tell(v, what) } }

// letInputWait stops the process until it has unread input.
func letInputWait(r *rig, v *voter, _ []*voter) {
	r.signal(syscall.SIGSTOP, v)
	time.Sleep(250 * time.Millisecond)
}

// renew resets connections and waits until they are made again.
func renew(r *rig, v *voter, others []*voter) {
	for _, o := range others {
		r.sever(v, o, idle)
	}
	time.Sleep(500 * time.Millisecond)
}

var deaths = []death{
	{"SIGKILL", nil, sigkill},
	{"SIGKILL, input unread", letInputWait, sigkill},
	{"SIGKILL, idle connections reset before", renew, sigkill},
	{"panic", nil, order("panic")},
	{"exec", nil, order("exec")},
	{"out of address space", nil, order("limit")},
	{"OOM killer", nil, func(r *rig, v *voter) {
		group := cgroup(os.Getenv(envInside))
		require.NoError(r.t, os.MkdirAll(group, 0o755))
		write := func(file string, number int) {
			require.NoError(r.t, os.WriteFile(filepath.Join(group, file), fmt.Append(nil, number), 0o644))
		}
		write("memory.limit_in_bytes", 64<<20)
		write("cgroup.procs", v.cmd.Process.Pid)
		r.tell(v, "eat")
	}},
}

// TestTheDeadAreProvenDead ends the leader in every way, and demands that the death is proven to
// each follower.
func TestTheDeadAreProvenDead(t *testing.T) {
	for _, load := range []string{"idle", "traffic", "traffic with TLS", "CPU hogs"} {
		t.Run(load, func(t *testing.T) {
			if load == "CPU hogs" && rounds == 0 {
				t.Skip("only for make kernel")
			}
			r := build(t, seed(t), brisk())
			for _, v := range r.voters {
				v.cfg.Groups = map[string]int{"idle": 0, "CPU hogs": 3}[load]
				if strings.HasPrefix(load, "traffic") {
					v.cfg.Groups = 30
				}
			}
			if load == "traffic with TLS" {
				r.encrypt()
			}
			if load == "CPU hogs" {
				r.hog()
			}
			r.start(r.voters...)
			r.killEach()
		})
	}
}

// TestSupervisedDeathsAreProvenBehindAFirewall: the firewall hides that a port refuses dials, but
// the parent sends the certificate of death on a connection that exists. Without a parent there is
// no proof.
func TestSupervisedDeathsAreProvenBehindAFirewall(t *testing.T) {
	hiding := []string{"DROP", "REJECT --reject-with icmp-host-prohibited"}
	for supervised, proofs := range map[bool]int{true: quorate - 1, false: 0} {
		t.Run(fmt.Sprintf("supervised=%t", supervised), func(t *testing.T) {
			t.Parallel()
			r := build(t, seed(t), brisk())
			for _, v := range r.voters {
				v.cfg.Supervised = supervised
			}
			r.start(r.voters...)
			for _, target := range hiding {
				for range max(rounds, 1) {
					found, failover := r.die(death{target, func(r *rig, v *voter, others []*voter) {
						r.block(v, "in", target, "--syn", others...)
					}, order("panic")})
					r.heal()
					t.Logf("%s: %d proofs, failover after %s", target, found.Proofs,
						failover.Round(time.Millisecond))
					require.Empty(t, found.wrong())
					require.Equal(t, proofs, found.Proofs, target)
				}
			}
		})
	}
}

func (r *rig) hog() {
	for range runtime.NumCPU() {
		hog := exec.Command("sh", "-c", "while :; do :; done")
		require.NoError(r.t, hog.Start())
		r.t.Cleanup(func() {
			_ = hog.Process.Kill()
			_ = hog.Wait()
		})
	}
}

func (r *rig) killEach() {
	var s strings.Builder
	w := tabwriter.NewWriter(&s, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\ndeath\ttrials\tproven to\tof\tfailover, median\tworst")
	var all verdict
	for _, d := range deaths {
		if _, err := os.Stat(filepath.Dir(cgroup(""))); err != nil && d.name == "OOM killer" {
			r.t.Log("no OOM killer: there are no memory control groups of version 1")
			continue
		}
		proofs, took := 0, []time.Duration{}
		for range max(rounds, 1) {
			found, failover := r.die(d)
			all.add(found)
			proofs, took = proofs+found.Proofs, append(took, failover)
		}
		slices.Sort(took)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\n", d.name, len(took), proofs, len(took)*(quorate-1),
			took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
	w.Flush()
	r.t.Log(s.String())
	require.Empty(r.t, all.wrong())
	require.Equal(r.t, max(rounds, 1)*len(deaths)*(quorate-1), all.Proofs)
}

// canProve reports whether a voter has the connections that would prove the death of another,
// according to its log. The caller holds mu.
func (r *rig) canProve(v, other *voter) bool {
	for _, rec := range slices.Backward(r.records) {
		if rec.Node == v.name && rec.Peer == other.name {
			switch rec.Kind {
			case provable:
				return true
			case connected, lost:
				return false
			}
		}
	}
	return false
}

// die is one trial.
func (r *rig) die(d death) (found verdict, failover time.Duration) {
	r.settle(30 * time.Second)
	time.Sleep(brisk().InitialWait) // of who was started last
	leader, others := r.settle(30 * time.Second)
	r.await(30*time.Second, "connections that prove a death", func() bool {
		return !slices.ContainsFunc(others, func(v *voter) bool { return !r.canProve(v, leader) })
	})
	if d.before != nil {
		d.before(r, leader, others)
	}
	began := now()
	r.noteEnd(leader)
	next := r.told()
	d.do(r, leader)
	<-leader.heard // its program has ended
	died, proofs := now(), 0
	r.lookFor(next, 2*time.Second, func(rec record) bool {
		if rec.Kind == proven {
			proofs++
		}
		if rec.Kind == leads && rec.Node != leader.name && failover == 0 {
			failover = max(rec.From.Sub(died), 1)
		}
		return failover > 0 && proofs == quorate-1
	})
	found = r.judge(began)
	r.kill(leader) // what is left of it
	r.start(leader)
	return found, failover
}

// told returns the number of records so far.
func (r *rig) told() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.records)
}

// lookFor passes the records from the next-th on to found, until it returns true or the limit has
// passed.
func (r *rig) lookFor(next int, limit time.Duration, found func(record) bool) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		r.mu.Lock()
		more := r.records[next:]
		r.mu.Unlock()
		next += len(more)
		if slices.ContainsFunc(more, found) {
			return
		}
	}
}

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// BenchmarkFailover kills or stops the leader of processes on one machine, and tells how long
// it takes until the next one leads: until the first follower knows (detection), until one has
// waited for its turn or a random time and asked the others (back-off), until it is elected
// and all follow it (election). Of a kill it also tells when the process is gone, and when each
// follower has proof of it. Medians and the worst, in milliseconds. Busy is how many loops
// compete for the cores.
func BenchmarkFailover(b *testing.B) {
	for _, c := range []struct {
		profile    string
		nodes      int
		signal     syscall.Signal
		busy       int
		supervised bool
		prepares   bool // each node prepares itself for a second before it may take over
	}{
		{"article", 5, syscall.SIGKILL, 0, false, false},
		{"lan", 3, syscall.SIGKILL, 0, false, false},
		{"lan", 3, syscall.SIGKILL, 0, false, true},
		{"lan", 5, syscall.SIGKILL, 0, false, false},
		{"lan", 5, syscall.SIGKILL, 0, true, false},
		{"lan", 5, syscall.SIGKILL, 2, false, false},
		{"lan", 5, syscall.SIGKILL, 2, true, false},
		{"lan", 3, syscall.SIGSTOP, 0, false, false},
	} {
		name := fmt.Sprintf("%s/%s/nodes=%d/busy=%d", c.profile, c.signal, c.nodes, c.busy)
		options := map[string]any{"profile": c.profile}
		if c.supervised {
			name, options["supervised"] = name+"/supervised", true
		}
		if c.prepares {
			name, options["on-prepare"] = name+"/prepares", "sleep 1"
		}
		b.Run(name, func(b *testing.B) {
			for range c.busy {
				keepBusy(b)
			}
			plainAndTLS(b, c.nodes, options, func(b *testing.B, s *nodes.Scene) {
				failover(b, s, c.signal, c.supervised)
			})
		})
	}
}

// keepBusy runs a loop in a process of its own until b ends.
func keepBusy(b *testing.B) {
	loop := exec.Command("sh", "-c", "while :; do :; done")
	require.NoError(b, loop.Start())
	b.Cleanup(func() {
		_ = loop.Process.Kill()
		_ = loop.Wait()
	})
}

// plainAndTLS starts a mesh without TLS, and one with it, and runs a benchmark with each.
func plainAndTLS(
	b *testing.B, size int, options map[string]any, run func(b *testing.B, s *nodes.Scene),
) {
	if os.Getenv("REALTIME") != "" {
		options["realtime"] = true
	}
	for _, tls := range []string{"off", "on"} {
		b.Run("tls="+tls, func(b *testing.B) {
			s := nodes.LayOut(b, options, procs.Numbered(size)...)
			if tls == "on" {
				pki := b.TempDir()
				_, err := certs.Issue(pki, "", procs.Numbered(size), time.Hour)
				require.NoError(b, err)
				for _, n := range s.Nodes() {
					nodes.Encrypt(b, n, pki)
				}
			}
			require.NoError(b, s.Start())
			run(b, s)
		})
	}
}

func failover(b *testing.B, s *nodes.Scene, signal syscall.Signal, supervised bool) {
	leader := s.Agree(s.Nodes(), nil)
	var exit, detection, proof, backOff, election, total []time.Duration
	for b.Loop() {
		time.Sleep(2 * time.Second) // round trips are measured once a second
		leader = s.Agree(s.Nodes(), nil)
		old := s.Named(leader.Leader)
		victim := old.Pid()
		if supervised {
			victim = childOf(b, old)
		}
		lost := time.Now()
		require.NoError(b, syscall.Kill(victim, signal))
		if signal == syscall.SIGKILL {
			for old.Pid() != 0 {
				time.Sleep(50 * time.Microsecond)
			}
			exit = append(exit, time.Since(lost))
		}
		next := s.Agree(s.Others(leader.Leader), nodes.Above(leader.Term))
		known := moment(s, lost, slices.MinFunc, func(e admin.Event) bool {
			return e.Leader == "" &&
				e.From == "FOLLOWER"
		})
		stands := moment(s, lost, slices.MaxFunc,
			func(e admin.Event) bool { return e.Reason == "PROPOSED" })
		proof = append(proof, proofs(s, old.Name, lost)...)
		followed := moment(s, lost, slices.MaxFunc,
			func(e admin.Event) bool { return e.Term == next.Term && e.Reason == "LEADER_FOUND" })
		detection = append(detection, known.Sub(lost))
		backOff = append(backOff, stands.Sub(known))
		election = append(election, followed.Sub(stands))
		total = append(total, followed.Sub(lost))
		if signal == syscall.SIGKILL {
			require.NoError(b, old.Start())
		} else {
			require.NoError(b, old.Signal(syscall.SIGCONT))
		}
		leader = s.Agree(s.Nodes(), nil)
	}
	b.ReportMetric(0, "ns/op") // the loop also restarts the killed node
	b.ReportMetric(median(detection), "detection-ms")
	if signal == syscall.SIGKILL {
		b.ReportMetric(median(exit), "exit-ms")
		b.ReportMetric(median(proof), "proof-ms")
		b.ReportMetric(float64(slices.Max(proof))/float64(time.Millisecond), "worst-proof-ms")
	}
	b.ReportMetric(median(backOff), "back-off-ms")
	b.ReportMetric(median(election), "election-ms")
	b.ReportMetric(median(total), "total-ms")
	b.ReportMetric(float64(slices.Max(total))/float64(time.Millisecond), "worst-ms")
}

// BenchmarkTransfer hands leadership back and forth among three processes, and tells
// how long nobody leads: from the old leader's last moment until the new one is
// elected. Median, in milliseconds.
func BenchmarkTransfer(b *testing.B) { plainAndTLS(b, 3, nil, transfers) }

func transfers(b *testing.B, s *nodes.Scene) {
	leader := s.Agree(s.Nodes(), nil)
	var gaps []time.Duration
	for b.Loop() {
		began := time.Now()
		c := s.Named(leader.Leader).Client()
		_, err := c.Tell(b.Context(), admin.TransferRequest{})
		require.NoError(b, err)
		next := s.Agree(s.Nodes(), nodes.Above(leader.Term))
		gaps = append(gaps, moment(s, began, slices.MaxFunc, nodes.BecameLeader).Sub(moment(s, began,
			slices.MinFunc, nodes.LostLeadership)))
		leader = next
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(gaps), "gap-ms")
}

// proofs are how long it took from then on until each of the others knew a node to be dead.
func proofs(s *nodes.Scene, dead string, since time.Time) (after []time.Duration) {
	for _, l := range s.Lines() {
		if l.Message == "peer is dead" && strings.Contains(l.Detail, "peer="+dead) &&
			l.Time.After(since) {
			after = append(after, l.Time.Sub(since))
		}
	}
	return after
}

// moment is when the first or last wanted transition since then happened.
func moment(s *nodes.Scene, since time.Time,
	pick func([]time.Time, func(a, b time.Time) int) time.Time, want func(admin.Event) bool,
) time.Time {
	var at []time.Time
	for _, e := range s.Transitions(want) {
		if !e.Time.Before(since) {
			at = append(at, e.Time)
		}
	}
	require.NotEmpty(s.T, at, "transitions since the kill")
	return pick(at, time.Time.Compare)
}

func median(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2]) / float64(time.Millisecond)
}

// childOf is the only child of a node's process.
func childOf(t testing.TB, n *procs.Node) int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", n.Pid()))
	require.NoError(t, err)
	var all []byte
	for _, list := range lists {
		children, _ := os.ReadFile(list) // its thread may have ended
		all = append(all, children...)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(all)))
	require.NoError(t, err)
	return pid
}

package main_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// BenchmarkHeartbeats tells which share of a core the leader of five processes takes, and the
// mean of the others, with the profile lan: a second of heartbeats each.
func BenchmarkHeartbeats(b *testing.B) {
	plainAndTLS(b, 5, map[string]any{"profile": "lan"}, func(b *testing.B, s *nodes.Scene) {
		g := s.Agree(s.Nodes(), nil)
		time.Sleep(2 * time.Second) // what comes with the start
		lead, others := s.Named(g.Leader), s.Others(g.Leader)
		used := func() (leader, other time.Duration) {
			for _, n := range others {
				other += processor(b, n) / time.Duration(len(others))
			}
			return processor(b, lead), other
		}
		began := time.Now()
		leader, other := used()
		for b.Loop() {
			time.Sleep(time.Second)
		}
		leaderEnd, otherEnd := used()
		whole := float64(time.Since(began)) / 100
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(leaderEnd-leader)/whole, "leader-%")
		b.ReportMetric(float64(otherEnd-other)/whole, "other-%")
	})
}

// processor is the time that a process has had.
func processor(b *testing.B, n *procs.Node) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.Pid()))
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(text), ") ")
	var user, system int64
	fields := strings.Fields(after)
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	require.NoError(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond // ticks of Linux
}

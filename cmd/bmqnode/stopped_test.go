package main_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// The timers of a follower that is stopped: its leader is given up after 2 s of silence, and
// links end 3 s after what was not answered.
func stoppable() map[string]any {
	o := nodes.Quick()
	o["initial-wait"], o["lease"] = "2100ms", "1900ms"
	o["heartbeat-broadcast"], o["heartbeat-miss-count"] = "500ms", 4
	return o
}

const (
	stopFor     = 2300 * time.Millisecond // longer than the inactivity interval
	stopAtMost  = 2600 * time.Millisecond // or the links may have ended
	stopsAtMost = 10                      // a machine that is not overloaded needs one
)

// A process that was stopped for longer than the inactivity interval reads what came meanwhile
// before it judges: it goes on following.
func TestAStoppedProcessGoesOnFollowing(t *testing.T) {
	t.Parallel()
	s := nodes.Play(t, 3, stoppable())
	for range stopsAtMost {
		leader := s.Agree(s.Nodes(), nil)
		follower := s.Others(leader.Leader)[0]
		if stopped, changes := stopAndGoOn(s, follower); stopped <= stopAtMost {
			require.Empty(t, changes)
			s.Agree(s.Nodes(), nodes.Same(leader))
			return
		}
	}
	t.Skipf("the machine is too slow: no process goes on within %s", stopAtMost)
}

// BenchmarkStoppedFollower tells how many of so many wake-ups change something.
func BenchmarkStoppedFollower(b *testing.B) {
	s := nodes.Play(b, 3, stoppable())
	changed, slow := 0, 0
	for b.Loop() {
		leader := s.Agree(s.Nodes(), nil)
		stopped, changes := stopAndGoOn(s, s.Others(leader.Leader)[0])
		if stopped > stopAtMost {
			slow++
		} else if len(changes) > 0 {
			changed++
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(changed), "changed")
	b.ReportMetric(float64(slow), "too-slow")
	require.Zero(b, changed)
	require.LessOrEqual(b, slow, b.N/2, "the machine is too busy to tell")
}

// stopAndGoOn stops a process, waits until it knows that it stalled and, for as long as the
// inactivity interval, what it concludes. It returns how long the process was stopped at most,
// and what it changed since.
func stopAndGoOn(s *nodes.Scene, n *procs.Node) (stopped time.Duration, changes []admin.Event) {
	before := stalls(s, n)
	began := time.Now()
	require.NoError(s.T, n.Signal(syscall.SIGSTOP))
	time.Sleep(stopFor) // the length of the stop is what is tested
	require.NoError(s.T, n.Signal(syscall.SIGCONT))
	stopped = time.Since(began)
	s.Eventually("the stall is counted", func() bool { return stalls(s, n) > before })
	time.Sleep(2 * time.Second)
	return stopped, s.Transitions(func(e admin.Event) bool {
		return string(e.Node) == n.Name && e.Time.After(began)
	})
}

func stalls(s *nodes.Scene, n *procs.Node) uint64 {
	st, err := n.Status(s.T.Context())
	require.NoError(s.T, err)
	return st.Stalls
}

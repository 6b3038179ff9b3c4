package main_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// One line asks for a quality of service. All timers follow from it, every node shows what
// becomes of it, and a leader that is stopped, with its connections open, is replaced.
func TestAQualityOfServiceIsAllThatAUserWrites(t *testing.T) {
	t.Parallel()
	s := play(t, 3, map[string]any{"qos": map[string]any{
		"detect": "200ms", "mistakes": "1/30d", "accuracy": 0.99999,
	}})
	known := func(g cluster.GroupStatus) bool {
		q := g.QoS
		require.NotNil(t, q)
		require.Equal(t, "detect: 200ms, mistakes: 1/30d, accuracy: 0.99999", q.Asked.String())
		return g.Leading || q.Loss > 0 && q.Delay > 0 && q.Deviation > 0 && q.Mistakes > 0
	}
	var led cluster.GroupStatus
	s.eventually("followers know their links", func() bool {
		led = s.agree(s.Nodes(), func(g cluster.GroupStatus) bool { return g.Leader != "" })
		for _, n := range s.others(led.Leader) {
			st, err := n.Status(t.Context())
			if err != nil || st.Groups[0].Leader != led.Leader || !known(st.Groups[0]) {
				return false
			}
			q := st.Groups[0].QoS
			require.InDelta(t, 0.2, float64(q.Detect), 0.05, "more only if the lease makes it necessary")
			require.True(t, q.Period > 0 && q.Period <= 0.067, "%+v", q)
			require.Equal(t, q.Unmet == "", q.Met, "%+v", q)
		}
		return true
	})
	stdout := does(t, "status", "--admin", s.node(led.Leader).AdminAddr)
	require.Contains(t, stdout, "qos: detect: 200ms, mistakes: 1/30d, accuracy: 0.99999")
	require.Contains(t, stdout, "leads, with a heartbeat every ")

	led = s.agree(s.Nodes(), above(0))
	require.NoError(t, s.node(led.Leader).Signal(syscall.SIGSTOP))
	next := s.agree(s.others(led.Leader), above(led.Term))
	require.NotEqual(t, led.Leader, next.Leader)
	require.NotEmpty(t, s.transitions(func(e admin.Event) bool {
		return e.Reason == "LEADER_NO_HEARTBEAT"
	}), "the connections of a stopped process stay open")
	require.NoError(t, s.node(led.Leader).Signal(syscall.SIGCONT))
	s.agree(s.Nodes(), above(led.Term))
}

// A node whose file asks for phi has it, as its own record of the election says, and suspects a
// leader that is stopped.
func TestPhiSuspectsALeaderThatIsStopped(t *testing.T) {
	t.Parallel()
	options := quick()
	options["phi"] = map[string]any{
		"threshold": 9, "window": 100, "min-deviation": "50ms", "pause": "1300ms",
	}
	s := play(t, 3, options)
	led := s.agree(s.Nodes(), func(g cluster.GroupStatus) bool { return g.Since > 1 })
	require.NoError(t, s.node(led.Leader).Signal(syscall.SIGSTOP))
	s.agree(s.others(led.Leader), above(led.Term))
	require.NotEmpty(t, s.transitions(func(e admin.Event) bool {
		return e.Reason == "LEADER_NO_HEARTBEAT"
	}))
	require.NoError(t, s.node(led.Leader).Signal(syscall.SIGCONT))
	for _, n := range s.Nodes() {
		records, _, err := recording.Read(filepath.Join(n.Dir, "state"), recording.Recording)
		require.NoError(t, err)
		opened := slices.IndexFunc(records, func(r recording.Record) bool { return r.Setup != nil })
		require.GreaterOrEqual(t, opened, 0)
		require.Equal(t, "{threshold: 9, window: 100, min-deviation: 50ms, pause: 1.3s}",
			records[opened].Setup.Elector["phi"])
	}
}

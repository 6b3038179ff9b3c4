package main_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// One line asks for a quality of service. All timers follow from it, every node shows what
// becomes of it, and a leader that is stopped, with its connections open, is replaced.
func TestAQualityOfServiceIsAllThatAUserWrites(t *testing.T) {
	t.Parallel()
	s := nodes.Play(t, 3, map[string]any{"qos": map[string]any{
		"detect": "200ms", "mistakes": "1/30d", "accuracy": 0.99999,
	}})
	known := func(g cluster.GroupStatus) bool {
		q := g.QoS
		require.NotNil(t, q)
		require.Equal(t, "detect: 200ms, mistakes: 1/30d, accuracy: 0.99999", q.Asked.String())
		return g.Leading || q.Loss > 0 && q.Delay > 0 && q.Deviation > 0 && q.Mistakes > 0
	}
	var led cluster.GroupStatus
	s.Eventually("followers know their links", func() bool {
		led = s.Agree(s.Nodes(), func(g cluster.GroupStatus) bool { return g.Leader != "" })
		for _, n := range s.Others(led.Leader) {
			st, err := n.Status(t.Context())
			if err != nil || st.Groups[0].Leader != led.Leader || !known(st.Groups[0]) {
				return false
			}
			q := st.Groups[0].QoS
			// A busy machine delays beats, so that more is necessary for a while.
			if q.Detect < 0.15 || q.Detect > 0.25 {
				return false
			}
			require.True(t, q.Period > 0 && q.Period <= 0.067, "%+v", q)
			require.Equal(t, q.Unmet == "", q.Met, "%+v", q)
		}
		return true
	})
	stdout := nodes.Does(t, "status", "--admin", s.Named(led.Leader).AdminAddr)
	require.Contains(t, stdout, "qos: detect: 200ms, mistakes: 1/30d, accuracy: 0.99999")
	require.Contains(t, stdout, "leads, with a heartbeat every ")

	led = s.Agree(s.Nodes(), nodes.Above(0))
	require.NoError(t, s.Named(led.Leader).Signal(syscall.SIGSTOP))
	next := s.Agree(s.Others(led.Leader), nodes.Above(led.Term))
	require.NotEqual(t, led.Leader, next.Leader)
	require.NotEmpty(t, s.Transitions(func(e admin.Event) bool {
		return e.Reason == "LEADER_NO_HEARTBEAT"
	}), "the connections of a stopped process stay open")
	require.NoError(t, s.Named(led.Leader).Signal(syscall.SIGCONT))
	s.Agree(s.Nodes(), nodes.Above(led.Term))
}

package cluster_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// leaping is a clock that leaps forward, as a process sees it that was stopped: its
// timers find out later.
type leaping struct {
	clock.Clock
	ahead atomic.Int64
}

func (c *leaping) Now() time.Duration { return c.Clock.Now() + time.Duration(c.ahead.Load()) }

// leapingClocks are clocks for nodes, and the option that makes the nodes use them.
func leapingClocks(ids []cluster.NodeID) (map[cluster.NodeID]*leaping, clustertest.Option) {
	clocks := map[cluster.NodeID]*leaping{}
	for _, id := range ids {
		clocks[id] = &leaping{}
	}
	return clocks, clustertest.Hooks(func(id cluster.NodeID, h *testhook.Hooks) {
		clocks[id].Clock = clock.Process() // of the bubble
		h.Clock = clocks[id]
	})
}

// A process that was stopped beyond the end of its lease finds out late. Its deadline
// is still the end of the lease, not the moment of its waking.
func TestTheDeadlineOfAPausedLeaderIsTheEndOfItsLease(t *testing.T) {
	clocks, useClocks := leapingClocks(three)
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		l := c.campaign(three...).next()
		time.Sleep(time.Second)
		const pause = 4 * time.Second
		before := l.Deadline()
		clocks[l.Node().ID()].ahead.Add(int64(pause))
		<-l.Context().Done()
		require.LessOrEqual(t, l.Deadline(), before.Add(-pause), "the lease ended during the pause")
		require.False(t, l.Valid())
		l.Release()
	}, useClocks)
}

// The lease of a node is renewed while its work stops, but the deadline of the work stays. The
// leadership is not valid from then on, even before any timer has fired.
func TestStoppingWorkIsNotValidAfterItsDeadline(t *testing.T) {
	clocks, useClocks := leapingClocks(three)
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		l := c.campaign(three...).next()
		l.GiveUp()
		end := l.Deadline()
		time.Sleep(600 * time.Millisecond)
		require.True(t, l.Valid())
		clocks[l.Node().ID()].ahead.Add(int64(time.Until(end)))
		require.True(t, l.Election().IsLeader(), "its lease was renewed")
		require.False(t, l.Valid())
		l.Release()
	}, useClocks)
}

func TestWorkThatIsOverdueIsReportedOnce(t *testing.T) {
	var log testkit.Buffer
	logged := clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		l, err := leader.Default().Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, leader.Transfer(t.Context(), "")) // the work never stops
		<-l.Done()
		time.Sleep(time.Second)
		require.Equal(t, 1, log.Count("guarded work has not stopped in time"))
		l.Release()
	}, logged)
}

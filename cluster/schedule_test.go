package cluster_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// referee watches the work of all nodes of a world.
type referee struct {
	t     *testing.T
	mu    sync.Mutex
	works map[cluster.NodeID]*cluster.Leadership // whose OnStartedLeading runs
	began map[cluster.NodeID]int
	ended map[cluster.NodeID]int
	heard map[cluster.NodeID]cluster.Leader
	fence lsn.Fence
	turns int
}

// start is told of every OnStartedLeading: no work that is still valid may run
// anywhere else, and none at all on the same node.
func (r *referee) start(id cluster.NodeID, l *cluster.Leadership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns++
	require.Equal(r.t, r.began[id], r.ended[id], "OnStartedLeading of %s before OnStoppedLeading", id)
	r.began[id]++
	for other, held := range r.works {
		require.False(r.t, held.Valid(), "work of %s begins beside that of %s", id, other)
	}
	r.works[id] = l
}

func (r *referee) stop(id cluster.NodeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.works, id)
}

// stopped is told of every OnStoppedLeading: once for each start, after the work.
func (r *referee) stopped(id cluster.NodeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[id]++
	require.Equal(r.t, r.began[id], r.ended[id], "OnStoppedLeading of %s without OnStartedLeading", id)
	require.NotContains(r.t, r.works, id, "OnStoppedLeading of %s while its work runs", id)
}

// write is guarded work: tokens that valid leaders issue rise, whoever leads.
func (r *referee) write(l *cluster.Leadership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token, err := l.NextLSN(); err == nil {
		require.NoError(r.t, r.fence.AdmitNew(token))
	}
}

// newLeader is told of every OnNewLeader: never twice of the same leadership, never
// of an older one.
func (r *referee) newLeader(id cluster.NodeID, l cluster.Leader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Greater(r.t, l.Term, r.heard[id].Term, "as %s sees it", id)
	r.heard[id] = l
}

// callbacks work in steps, and take their time to stop: now and then longer than
// the lease lasts.
func (r *referee) callbacks(id cluster.NodeID,
	random func(time.Duration) time.Duration) cluster.Callbacks {
	return cluster.Callbacks{
		OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
			r.start(id, l)
			defer r.stop(id)
			for ctx.Err() == nil {
				r.write(l)
				select {
				case <-ctx.Done():
				case <-time.After(random(300 * time.Millisecond)):
				}
			}
			for stop := time.Now().Add(random(1500 * time.Millisecond)); time.Now().Before(stop); time.Sleep(
				20 * time.Millisecond) {
				r.write(l)
			}
			return nil
		},
		OnStoppedLeading: func(*cluster.Leadership) { r.stopped(id) },
		OnNewLeader:      func(l cluster.Leader) { r.newLeader(id, l) },
	}
}

// trouble does one thing at random to a running node.
func (c *testCluster) trouble(pick func(n int) int) {
	id := c.ids[pick(len(c.ids))]
	e := c.Node(id).Default()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	switch pick(7) {
	case 0, 1:
		c.Faults(id).Cut("*", fault.Both)
	case 2:
		c.Faults(id).HealAll()
	case 3:
		e.Transfer(ctx, "")
	case 4:
		e.StepDown(ctx, 2*time.Second)
	case 5:
		e.SetFit(errors.New("by chance"))
	case 6:
		e.SetFit(nil)
	}
}

// Whatever happens to the cluster, callbacks come in pairs and guarded work of two
// nodes never overlaps.
func TestCallbacksArePairedUnderRandomSchedules(t *testing.T) {
	const schedules, steps = 8, 60
	playSeeds(t, schedules, func(c *seededCluster) { playSchedule(c, steps) },
		clustertest.Configure(awaitCampaign))
}

func playSchedule(c *seededCluster, steps int) {
	t := c.t
	c.record()
	r := &referee{
		t: t, works: map[cluster.NodeID]*cluster.Leadership{}, began: map[cluster.NodeID]int{},
		ended: map[cluster.NodeID]int{},
		heard: map[cluster.NodeID]cluster.Leader{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	results := c.run(ctx, func(id cluster.NodeID) cluster.Callbacks {
		return r.callbacks(id, testhook.NewDice(c.seed, "work of "+string(id)).UpTo)
	})
	time.Sleep(election)
	for range steps {
		c.trouble(c.dice.Below)
		time.Sleep(c.dice.UpTo(3 * time.Second))
	}
	c.Heal()
	for _, id := range c.ids {
		require.NoError(t, c.Node(id).Default().SetFit(nil))
	}
	time.Sleep(2 * election)
	c.leader() // and they find together again
	c.endRecord()
	cancel()
	for _, result := range results {
		require.NoError(t, <-result)
	}
	require.Equal(t, r.began, r.ended)
	require.Empty(t, r.works)
	require.Greater(t, r.turns, 1, "the schedule never moved the leadership")
}

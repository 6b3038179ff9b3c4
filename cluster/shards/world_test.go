package shards_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/shards"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hold = 10 * time.Second

var three, five = []cluster.NodeID{"a", "b", "c"}, []cluster.NodeID{"a", "b", "c", "d", "e"}

// world is an application with shards on the nodes of a cluster in virtual time. Its shards write
// to a resource that checks tokens and notes who works at the same time.
type world struct {
	*clustertest.Cluster
	t    *testing.T
	cfg  shards.Config
	runs map[cluster.NodeID]*run

	mu       sync.Mutex
	works    map[int][]cluster.NodeID // who works on each shard now
	fences   map[int]*lsn.Fence
	overlaps []string
	stale    []string // writes that were refused
	begun    int      // how often work began
	owner    map[int]cluster.NodeID
	up       map[cluster.NodeID]bool // has not been disturbed since it had its last shard
	left     time.Time               // when a node last left
	planned  int                     // moves away from a node that is up
	needless []string                // those of them that did not make the loads more equal
	slow     time.Duration
}

// run is one call of shards.Run.
type run struct {
	stop  context.CancelFunc
	ended chan error
}

// inWorld runs a story with the given shards. Without a Work in cfg they write until they are
// told to stop.
func inWorld(
	t *testing.T, ids []cluster.NodeID, cfg shards.Config, story func(*testing.T, *world),
) {
	t.Helper()
	clustertest.Run(t, ids, func(t *testing.T, c *clustertest.Cluster) {
		w := &world{
			Cluster: c, t: t, cfg: cfg, runs: map[cluster.NodeID]*run{},
			works: map[int][]cluster.NodeID{}, fences: map[int]*lsn.Fence{},
			owner: map[int]cluster.NodeID{}, up: map[cluster.NodeID]bool{},
		}
		w.cfg.Hold = hold
		t.Cleanup(func() {
			for id := range w.runs {
				w.setUp(id, false)
			}
			for id := range w.runs {
				w.runs[id].stop()
			}
			for id := range w.runs {
				<-w.runs[id].ended
			}
			require.Empty(t, w.overlaps)
			require.Empty(t, w.stale)
			require.Empty(t, w.needless)
		})
		for _, id := range c.Running() {
			w.run(id)
		}
		story(t, w)
	})
}

// run runs the shards on a node that has started.
func (w *world) run(id cluster.NodeID) {
	ctx, stop := context.WithCancel(context.Background())
	cfg, r := w.cfg, &run{stop, make(chan error, 1)}
	inner := cfg.Work
	if inner == nil {
		inner = func(context.Context, shards.Shard) error { return nil }
	}
	cfg.Work = func(ctx context.Context, s shards.Shard) error {
		w.enter(id, s.Number)
		defer w.leave(id, s.Number)
		if err := inner(ctx, s); err != nil || w.cfg.Work != nil {
			return err
		}
		return w.write(ctx, s)
	}
	w.runs[id] = r
	w.setUp(id, true)
	node := w.Node(id)
	go func() {
		r.ended <- shards.Run(ctx, node, cfg)
		close(r.ended) // a test that has failed asks again
	}()
}

func (w *world) enter(id cluster.NodeID, s int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.works[s]) > 0 {
		w.overlaps = append(w.overlaps,
			fmt.Sprintf("%s begins shard %d, on which %v work", id, s, w.works[s]))
	}
	w.works[s] = append(w.works[s], id)
	w.begun++
	w.noteMove(s, id)
}

// noteMove notes who owns a shard now. A planned move must make the loads more equal: then only
// nodes that come and go can make them unequal, and nothing goes back and forth.
func (w *world) noteMove(s int, to cluster.NodeID) {
	from, loads := w.owner[s], map[cluster.NodeID]int{}
	for _, id := range w.owner {
		loads[id]++
	}
	w.owner[s] = to
	if from == to || !w.up[from] {
		return
	}
	w.planned++
	// Where a move goes that was under way when a node left, that node's shards may go, too.
	if time.Since(w.left) > 3*time.Second && loads[from] < loads[to]+2 {
		w.needless = append(w.needless,
			fmt.Sprintf("shard %d from %s to %s with the loads %v", s, from, to, loads))
	}
}

func (w *world) leave(id cluster.NodeID, s int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.works[s] = slices.DeleteFunc(w.works[s], func(one cluster.NodeID) bool { return one == id })
}

// write writes once a second with a new token, and goes on for a while after it is told to stop.
func (w *world) write(ctx context.Context, s shards.Shard) error {
	for {
		token, err := s.Token()
		if err != nil {
			return err
		}
		w.mu.Lock()
		if w.fences[s.Number] == nil {
			w.fences[s.Number] = &lsn.Fence{}
		}
		if err := w.fences[s.Number].AdmitNew(token); err != nil {
			w.stale = append(w.stale, fmt.Sprintf("shard %d: %v", s.Number, err))
		}
		slow := w.slow
		w.mu.Unlock()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			time.Sleep(slow)
			return ctx.Err()
		}
	}
}

// owners returns who works on each shard; "" for nobody.
func (w *world) owners() []cluster.NodeID {
	w.mu.Lock()
	defer w.mu.Unlock()
	owners := make([]cluster.NodeID, w.cfg.N)
	for i := range owners {
		for _, id := range w.works[i] {
			owners[i] = id
		}
	}
	return owners
}

// loads returns how many shards each node works on, and in all.
func (w *world) loads() (loads map[cluster.NodeID]int, all int) {
	loads = map[cluster.NodeID]int{}
	for _, id := range w.owners() {
		if id != "" {
			loads[id]++
			all++
		}
	}
	return loads, all
}

// awaitAll waits until somebody works on every shard.
func (w *world) awaitAll() []cluster.NodeID {
	w.t.Helper()
	w.Await("work on all shards", func() bool { _, all := w.loads(); return all == w.cfg.N })
	return w.owners()
}

// moved returns how many shards have other owners.
func moved(before, after []cluster.NodeID) (n int) {
	for i := range before {
		if before[i] != after[i] {
			n++
		}
	}
	return n
}

func (w *world) setUp(id cluster.NodeID, up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up[id] = up
	if !up {
		w.left = time.Now()
	}
}

// stop ends the application on a node, and its process, in order.
func (w *world) stop(id cluster.NodeID) {
	w.setUp(id, false)
	w.runs[id].stop()
	require.NoError(w.t, <-w.runs[id].ended)
	delete(w.runs, id)
	w.Stop(id)
}

// crash ends a node's process and, as that would, its application.
func (w *world) crash(id cluster.NodeID) {
	w.setUp(id, false)
	w.mu.Lock()
	for s := range w.works {
		w.works[s] = slices.DeleteFunc(w.works[s], func(one cluster.NodeID) bool { return one == id })
	}
	w.mu.Unlock()
	w.Crash(id)
	<-w.runs[id].ended
	delete(w.runs, id)
}

// back starts a node and its application.
func (w *world) back(id cluster.NodeID) {
	w.Start(id)
	w.run(id)
}

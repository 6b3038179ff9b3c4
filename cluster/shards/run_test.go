package shards_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/shards"
	"github.com/bmqelect/bmqelect/elector"
)

// All nodes are up: each shard is led by the node that comes first for it. When one dies its shards
// go to those that come next, and no others move. When it is back it gets its share after a while.
func TestShardsSpreadAndStay(t *testing.T) {
	// With this wait and a round trip that is not 0 nodes go by turns: who follows a dead leader is
	// not a matter of chance.
	timing := elector.Article()
	timing.MinRandomWait = 10 * time.Millisecond
	turns := cluster.ElectionConfig{Timing: timing}
	inWorld(t, five, shards.Config{N: 40, Election: turns}, func(t *testing.T, w *world) {
		for _, a := range five {
			for _, b := range five {
				w.Faults(a).Delay(b, time.Millisecond, 0)
			}
		}
		first := w.awaitAll()
		loads, _ := w.loads()
		require.Len(t, loads, 5, "%v", loads)
		for i, owner := range first {
			w.requireFirst(owner, five, i)
		}
		time.Sleep(10 * hold)
		w.requireEven(5)
		even := w.owners()
		time.Sleep(20 * time.Minute)
		require.Equal(t, even, w.owners(), "nothing moves without a cause")

		dead := even[0]
		had, _ := w.loads()
		w.crash(dead)
		after := w.awaitAll()
		require.Equal(t, had[dead], moved(even, after), "only its shards move")
		for i := range after {
			if even[i] == dead {
				w.requireFirst(after[i], w.Running(), i)
			}
		}
		w.back(dead)
		time.Sleep(hold / 2)
		require.Equal(t, after, w.owners(), "a node that is back gets nothing at once")
		time.Sleep(20 * hold)
		w.requireEven(5)
		loads, _ = w.loads()
		require.LessOrEqual(t, moved(after, w.owners()), loads[dead]+8, "little else moves")
	})
}

// requireFirst demands that a node ranks before the others of some for a shard.
func (w *world) requireFirst(first cluster.NodeID, among []cluster.NodeID, shard int) {
	w.t.Helper()
	for _, id := range among {
		if id != first {
			require.Less(w.t, w.status(id, shard).Priority, w.status(first, shard).Priority,
				"shard %d: %s before %s", shard, first, id)
		}
	}
}

func (w *world) status(id cluster.NodeID, shard int) cluster.GroupStatus {
	w.t.Helper()
	e, err := w.Node(id).Lookup(fmt.Sprintf("shard/%d", shard))
	require.NoError(w.t, err)
	return e.Status()
}

// requireEven demands that all shards are worked on, and that the loads differ by the margin at
// most.
func (w *world) requireEven(nodes int) {
	w.t.Helper()
	loads, all := w.loads()
	require.Equal(w.t, w.cfg.N, all)
	require.Len(w.t, loads, nodes, "%v", loads)
	least, most := all, 0
	for _, load := range loads {
		least, most = min(least, load), max(most, load)
	}
	require.LessOrEqual(w.t, most-least, 2, "%v", loads)
}

// Some nodes are not there at the start: those that come next lead their shards.
func TestAColdStartWithoutSomeNodes(t *testing.T) {
	inWorld(t, five, shards.Config{N: 20}, func(t *testing.T, w *world) {
		w.crash("a")
		w.crash("b")
		w.awaitAll()
		loads, _ := w.loads()
		require.Len(t, loads, 3, "%v", loads)
	})
}

// A planned move begins after the work of the old owner has ended, however long that takes within
// the lease. The resource of the world sees each overlap, and each token that is not above the
// last.
func TestAPlannedMoveWaitsForTheWork(t *testing.T) {
	inWorld(t, three, shards.Config{N: 12}, func(t *testing.T, w *world) {
		w.slow = 400 * time.Millisecond // the stop margin is 450
		w.awaitAll()
		w.crash("a")
		w.awaitAll()
		w.back("a")
		begun := w.begun
		w.Await("its share", func() bool { loads, _ := w.loads(); return loads["a"] >= 3 })
		require.Greater(t, w.begun, begun, "there was a move")
	})
}

func TestShutdownHandsOver(t *testing.T) {
	inWorld(t, three, shards.Config{N: 12}, func(t *testing.T, w *world) {
		w.awaitAll()
		time.Sleep(hold / 2) // until every leader knows that its followers may stand
		before := w.owners()
		for i, owner := range before { // whoever has the next rank is named ahead
			is := func(id cluster.NodeID) bool { return id == owner }
			others := slices.DeleteFunc(slices.Clone(three), is)
			w.requireFirst(w.status(owner, i).Successor, others, i)
		}
		loads, _ := w.loads()
		began := time.Now()
		w.setUp("b", false)
		w.runs["b"].stop()
		require.NoError(t, <-w.runs["b"].ended)
		left, _ := w.loads()
		require.Zero(t, left["b"], "Run returns after the work")
		after := w.awaitAll()
		require.Less(t, time.Since(began), time.Second, "no lease had to end")
		require.Equal(t, loads["b"], moved(before, after))
		w.run("b") // takes the elections up that are open
		time.Sleep(10 * hold)
		w.requireEven(3)
	})
}

// Where Work fails the shard goes to another node, and that node gets little for a while, however
// few shards it leads.
func TestWorkThatFails(t *testing.T) {
	var failed atomic.Int64
	var w *world
	cfg := shards.Config{N: 12, Work: func(ctx context.Context, s shards.Shard) error {
		if w.leads("a", s.Number) {
			failed.Add(1)
			return errors.New("the disk of a is broken")
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	inWorld(t, three, cfg, func(t *testing.T, inner *world) {
		w = inner
		for _, id := range three {
			w.setUp(id, false) // shards come back from a: each move has that cause
		}
		time.Sleep(time.Minute)
		loads, all := w.loads()
		require.Equal(t, 12, all)
		require.Zero(t, loads["a"], "%v", loads)
		before := failed.Load()
		require.Positive(t, before)
		time.Sleep(time.Hour)
		tries := int64(time.Hour / (10 * hold)) // each with a share of four shards
		require.LessOrEqual(t, failed.Load()-before, 4*(tries+1), "it is tried again, seldom")
		_, all = w.loads()
		require.Equal(t, 12, all)
	})
}

func (w *world) leads(id cluster.NodeID, shard int) bool {
	e, err := w.Node(id).Lookup(fmt.Sprintf("shard/%d", shard))
	return err == nil && e.IsLeader()
}

func TestAPanicEndsRun(t *testing.T) {
	inWorld(t, three, shards.Config{N: 6}, func(t *testing.T, w *world) {
		w.awaitAll()
		w.setUp("a", false)
		w.runs["a"].stop()
		require.NoError(t, <-w.runs["a"].ended)
		w.cfg.Work = func(context.Context, shards.Shard) error { panic("oops") }
		w.run("a")
		w.setUp("a", false)
		w.setUp("c", false)
		w.crash("b")
		w.runs["c"].stop()
		require.NoError(t, <-w.runs["c"].ended)
		delete(w.runs, "c")
		err := <-w.runs["a"].ended
		delete(w.runs, "a")
		var panicked *cluster.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Equal(t, "oops", panicked.Value)
		require.ErrorContains(t, err, "shards of node a")
	})
}

func TestOpenRunsBeforeWorkAndIsBounded(t *testing.T) {
	var now, most atomic.Int64
	cfg := shards.Config{N: 15, MaxStarts: 1, Open: func(ctx context.Context, s shards.Shard) error {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(3 * time.Second)
		return nil
	}}
	inWorld(t, three, cfg, func(t *testing.T, w *world) {
		w.awaitAll()
		require.LessOrEqual(t, most.Load(), int64(len(three)))
		require.Greater(t, most.Load(), int64(1))
		for _, id := range three {
			sums := w.Node(id).StatusOf(cluster.Selection{Prefix: "shard/", Few: 1, Top: 1}).Elections
			require.Zero(t, sums.WorkEnds, "who waits for more than half of Hold goes on if others end")
		}
	})
}

// Opens that never end keep their own shards. Those that wait for them go to other nodes, and come
// back seldom.
func TestOpenThatHangs(t *testing.T) {
	var hung, opened atomic.Int64
	var at atomic.Pointer[world]
	cfg := shards.Config{N: 30, MaxStarts: 2, Open: func(ctx context.Context, s shards.Shard) error {
		if at.Load().leads("a", s.Number) {
			hung.Add(1)
			<-ctx.Done()
		}
		opened.Add(1)
		return ctx.Err()
	}}
	inWorld(t, three, cfg, func(t *testing.T, w *world) {
		at.Store(w)
		for _, id := range three {
			w.setUp(id, false) // shards come back from a: each move has that cause
		}
		time.Sleep(10 * time.Minute)
		loads, all := w.loads()
		require.EqualValues(t, 2, hung.Load())
		require.Equal(t, 28, all, "%v", loads)
		require.Zero(t, loads["a"], "%v", loads)
		before := opened.Load()
		time.Sleep(20 * time.Minute)
		tries := int64(20 * time.Minute / (10 * hold)) // each with what a lacks to its share of ten
		require.LessOrEqual(t, opened.Load()-before, 8*(tries+1), "it is tried again, seldom")
	})
}

// An Open that ends its goroutine, as t.FailNow does, gives its place to the next.
func TestOpenThatExits(t *testing.T) {
	var exits atomic.Int64
	cfg := shards.Config{N: 12, MaxStarts: 1, Open: func(context.Context, shards.Shard) error {
		if exits.Add(1) <= 6 {
			runtime.Goexit()
		}
		return nil
	}}
	inWorld(t, three, cfg, func(t *testing.T, w *world) {
		for _, id := range three {
			w.setUp(id, false)
		}
		time.Sleep(10 * time.Minute)
		_, all := w.loads()
		require.Equal(t, 12, all)
	})
}

// A shard that is only followed costs no goroutine, and one that is led costs two: one that works,
// and one that would tell it to stop.
func TestGoroutines(t *testing.T) {
	count := func(n int) (total int) {
		inWorld(t, three, shards.Config{N: n}, func(t *testing.T, w *world) {
			w.awaitAll()
			total = runtime.NumGoroutine()
		})
		return total
	}
	few, many := count(10), count(40)
	require.LessOrEqual(t, many-few, 2*30+5, "for 30 more shards on three nodes")
}

func TestTwoRunsOfTheSameShards(t *testing.T) {
	inWorld(t, three, shards.Config{N: 3}, func(t *testing.T, w *world) {
		w.awaitAll()
		first := w.runs["a"]
		w.run("a")
		second := w.runs["a"]
		w.runs["a"] = first
		require.ErrorIs(t, <-second.ended, cluster.ErrCampaigning)
	})
}

// Messages open elections of a prefix, and close them when they are idle. Those of shards stay open
// until it is the node's turn to stand.
func TestShardsWithAPrefixOfTheNode(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		var works atomic.Int64
		ended := make(chan error, len(three))
		run := func(id cluster.NodeID) {
			cfg := shards.Config{N: 30, Work: func(ctx context.Context, _ shards.Shard) error {
				works.Add(1)
				defer works.Add(-1)
				<-ctx.Done()
				return nil
			}}
			go func() { ended <- shards.Run(t.Context(), c.Node(id), cfg) }()
		}
		run("a")
		c.Await("work on all shards", func() bool { return works.Load() == 30 })
		c.Crash("a")
		<-ended
		run("b")
		run("c")
		c.Await("work on all shards", func() bool { return works.Load() == 30 || len(ended) > 0 })
		if len(ended) > 0 {
			require.NoError(t, <-ended)
		}
	}, clustertest.Configure(func(cfg *cluster.Config) {
		cfg.PrefixIdle = time.Second
		cfg.Prefixes = map[string]cluster.ElectionConfig{"shard/": {AwaitCampaign: true}}
	}))
}

func TestANodeThatIsClosedEndsRun(t *testing.T) {
	inWorld(t, three, shards.Config{N: 3}, func(t *testing.T, w *world) {
		w.awaitAll()
		w.setUp("a", false)
		require.NoError(t, w.Node("a").Close(t.Context()))
		w.Closed("a")
		require.ErrorIs(t, <-w.runs["a"].ended, cluster.ErrClosed)
		delete(w.runs, "a")
	})
}

func TestWhatIsWrongWithAConfig(t *testing.T) {
	work := func(context.Context, shards.Shard) error { return nil }
	type election = cluster.ElectionConfig
	for want, cfg := range map[string]shards.Config{
		"Work is nil: it must be a function": {N: 1},
		"N is 0: it must be positive":        {Work: work},
		"Election.Priority is 3: it must be 0": {
			Work: work, N: 1, Election: election{Priority: 3}},
		"Election.Takeover is 1s: it must be 0": {
			Work: work, N: 1, Election: election{Takeover: 1e9}},
		"MaxStarts is -1: it must be positive": {Work: work, N: 1, MaxStarts: -1},
		"Hold is -1s: it must be positive":     {Work: work, N: 1, Hold: -time.Second},
	} {
		require.ErrorContains(t, shards.Run(t.Context(), nil, cfg), want)
	}
	require.ErrorContains(t, shards.Run(t.Context(), nil, shards.Config{}),
		"shards config: Work is nil: it must be a function\nN is 0", "all that is wrong")
}

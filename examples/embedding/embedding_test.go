package embedding

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfigurationsAreValid(t *testing.T) {
	cfg := configuration()
	require.NoError(t, cfg.Validate())
	for _, e := range []cluster.ElectionConfig{timers(), preferred()} {
		cfg.Election = e
		require.NoError(t, cfg.Validate())
	}
}

// atWork is a cluster in which every node campaigns, in one idiom or the other,
// and what they write to.
func atWork(t *testing.T, f func(t *testing.T, c *clustertest.Cluster, d *disk),
	lead func(*reporter, context.Context, *cluster.Election) error, more ...clustertest.Option) {
	t.Helper()
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		var d disk
		archive := OpenArchive(lsn.LSN{}, d.save)
		for _, id := range three {
			go lead(reporterTo(archive), t.Context(), c.Node(id).Default())
		}
		f(t, c, &d)
	}, append(more, awaiting)...)
}

// awaitAnother waits until another node than the old leader leads.
func awaitAnother(c *clustertest.Cluster, old cluster.NodeID) {
	c.Await("another leader", func() bool { return c.Leader() != "" && c.Leader() != old })
}

func TestBothIdiomsHandOverAndGoOn(t *testing.T) {
	for _, lead := range []func(*reporter, context.Context, *cluster.Election) error{(*reporter).lead,
		(*reporter).campaign} {
		atWork(t, func(t *testing.T, c *clustertest.Cluster, d *disk) {
			for range 3 {
				old := c.AwaitLeader()
				_, before := d.read()
				c.Await("a report", func() bool { _, count := d.read(); return count > before })
				c.Isolate(old)
				awaitAnother(c, old)
				c.Heal()
				time.Sleep(5 * time.Second)
			}
		}, lead)
	}
}

// Whoever campaigns with a handle stops when its context ends, and hands over.
func TestACampaignEndsWithItsContext(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		var d disk
		r := reporterTo(OpenArchive(lsn.LSN{}, d.save))
		cancels, ended := map[cluster.NodeID]context.CancelFunc{}, make(chan error, len(three))
		for _, id := range three {
			ctx, cancel := context.WithCancel(t.Context())
			cancels[id] = cancel
			go func() { ended <- r.campaign(ctx, c.Node(id).Default()) }()
		}
		old := c.AwaitLeader()
		time.Sleep(5 * time.Second)
		cancels[old]()
		require.ErrorIs(t, <-ended, context.Canceled)
		awaitAnother(c, old)
	}, awaiting)
}

// A leader that cannot write does not pretend to work.
func TestWorkEndsWithTheErrorOfPut(t *testing.T) {
	full := errors.New("disk full")
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		r := reporterTo(OpenArchive(lsn.LSN{}, func(lsn.LSN, string) error { return full }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, r.campaign(ctx, c.Node("a").Default()), full)
	}, awaiting)
}

func TestHandovers(t *testing.T) {
	for name, act := range map[string]func(context.Context, *cluster.Election) error{
		"deploy": beforeDeploy, "transfer": handOver,
	} {
		atWork(t, func(t *testing.T, c *clustertest.Cluster, _ *disk) {
			old := c.AwaitLeader()
			time.Sleep(5 * time.Second) // the others have acked heartbeats
			if old == "b" {
				require.NoError(t, c.Node("b").Transfer(t.Context(), "a"))
				old = "a"
				time.Sleep(5 * time.Second)
			}
			require.NoError(t, act(t.Context(), c.Node(old).Default()), name)
			awaitAnother(c, old)
			if name == "transfer" {
				require.Equal(t, cluster.NodeID("b"), c.Leader())
			}
		}, (*reporter).lead)
	}
}

func TestAnUnhealthyNodeDoesNotLead(t *testing.T) {
	var full atomic.Value // the node whose queue is full
	full.Store(cluster.NodeID(""))
	atWork(t, func(t *testing.T, c *clustertest.Cluster, _ *disk) {
		old := c.AwaitLeader()
		full.Store(old)
		awaitAnother(c, old)
		require.Equal(t, "queue: full", c.Node(old).Default().Status().Unfit)
	}, (*reporter).lead, clustertest.Configure(func(cfg *cluster.Config) {
		id := cfg.Node
		cfg.Health = probes(t.TempDir(), func(context.Context) error {
			if full.Load() == id {
				return errors.New("full")
			}
			return nil
		})
	}))
}

// Each tenant is led by the node that ranks first for it, as all stand at once.
func TestEachTenantHasALeader(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		var d disk
		r := reporterTo(OpenArchive(lsn.LSN{}, d.save))
		// one archive for each is enough
		r.put = func(_ context.Context, token lsn.LSN, text string) error { return d.save(token, text) }
		tenants := []string{"x", "y", "z"}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, len(three))
		for i, id := range three {
			go func() { ended <- leadEach(ctx, c.Node(id), map[string]int{"x": i, "y": -i, "z": 0}, r) }()
		}
		leaders := func() (n int) {
			for _, id := range three {
				for _, g := range c.Node(id).Status().Groups {
					if g.Group != cluster.DefaultGroup && g.Leading {
						n++
					}
				}
			}
			return n
		}
		c.Await("a leader for each tenant", func() bool { return leaders() == len(tenants) })
		cancel()
		for range three {
			require.NoError(t, <-ended)
		}
		require.ErrorIs(t, leadEach(t.Context(), c.Node("a"), map[string]int{"x": 1}, r), cluster.ErrOpen)
	})
}

// Only one node has heard of the tenant before.
func TestATenantNeedNotBeKnownBefore(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		var d disk
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		r := reporterTo(OpenArchive(lsn.LSN{}, d.save))
		go func() { ended <- leadOne(ctx, c.Node("a"), "new", r) }()
		require.Equal(t, cluster.NodeID("a"), c.AwaitLeader("reports/new"))
		cancel()
		require.NoError(t, <-ended)
		_, err := c.Node("a").Lookup("reports/new")
		require.ErrorIs(t, err, cluster.ErrNotOpen)
	}, clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Prefixes = map[string]cluster.ElectionConfig{"reports/": {AwaitCampaign: true}}
	}))
}

func TestFollowersSeeEveryLeader(t *testing.T) {
	atWork(t, func(t *testing.T, c *clustertest.Cluster, _ *disk) {
		ended := make(chan struct{})
		go func() { defer close(ended); follow(t.Context(), c.Node("a").Default()) }()
		c.AwaitLeader()
		c.Stop("a")
		<-ended
	}, (*reporter).lead)
}

func TestTheFenceOutlivesARestart(t *testing.T) {
	var d disk
	require.NoError(t, OpenArchive(lsn.LSN{}, d.save).Put(lsn.LSN{Term: 5, Counter: 1}, "x"))
	newest, _ := d.read()
	again := OpenArchive(newest, d.save)
	require.ErrorAs(t, again.Put(lsn.LSN{Term: 4, Counter: 9}, "late"), new(*lsn.StaleError))
	_, count := d.read()
	require.Equal(t, 1, count)
}

// TestServeEndsOnSIGTERM runs a process's main function with a node that is alone.
func TestServeEndsOnSIGTERM(t *testing.T) {
	var d disk
	cfg := configuration()
	cfg.Voters, cfg.Join, cfg.DataDir = cfg.Voters[:1], nil, t.TempDir()
	cfg.GossipAddr, cfg.MeshAddr, cfg.TLS = "127.0.0.1:0", "127.0.0.1:0", nil
	ended := make(chan error, 1)
	go func() { ended <- serve(cfg, reporterTo(OpenArchive(lsn.LSN{}, d.save))) }()
	require.Eventually(t, func() bool { _, count := d.read(); return count > 0 }, time.Minute,
		10*time.Millisecond)
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGTERM))
	require.NoError(t, <-ended)
	cfg.Voters = nil
	require.ErrorContains(t, serve(cfg, nil), "Voters is empty")
}

// counter is a cache that counts how often it was filled.
type counter struct{ fills atomic.Int32 }

func (c *counter) Load(context.Context) error { c.fills.Add(1); return nil }

// The next leader has filled its cache before it leads.
func TestASuccessorIsWarm(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		caches := map[cluster.NodeID]*counter{}
		for _, id := range three {
			caches[id] = &counter{}
			go func() {
				_ = warm(t.Context(), c.Node(id).Default(), caches[id],
					func(ctx context.Context, _ *cluster.Leadership, _ loader) error {
						<-ctx.Done()
						return nil
					})
			}()
		}
		old := c.AwaitLeader()
		c.Await("a warm follower", func() bool {
			fills := int32(0)
			for id, cache := range caches {
				if id != old {
					fills += cache.fills.Load()
				}
			}
			return fills > 0
		})
	}, awaiting)
}

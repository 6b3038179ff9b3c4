package migrate

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestThePageHasTheCodeThatIsTested(t *testing.T) {
	testkit.Page(t, "../../docs/migrate.md", "*.go", "../../integrations/kubernetes/example_test.go")
}

func TestTheConfigurationIsValid(t *testing.T) {
	require.NoError(t, config("reports-0", "10.0.0.1").Validate())
}

// nothing is an old elector that always lets its node work.
type nothing struct{}

func (nothing) Run(ctx context.Context, work func(context.Context)) error {
	work(ctx)
	return nil
}

// Whatever leads is one of three, and another one goes on when its process has gone.
func TestEachWayToLeadFailsOver(t *testing.T) {
	for name, lead := range map[string]func(context.Context, *cluster.Election, func(context.Context)){
		"both": func(ctx context.Context, e *cluster.Election, work func(context.Context)) {
			_ = beside(ctx, nothing{}, e, work)
		},
		"raft": func(ctx context.Context, e *cluster.Election, work func(context.Context)) {
			s := &service{begin: func() func() {
				ctx, cancel := context.WithCancel(ctx)
				ended := make(chan struct{})
				go func() { defer close(ended); work(ctx) }()
				return func() { cancel(); <-ended }
			}}
			_ = s.follow(ctx, e)
		},
		"etcd": func(ctx context.Context, e *cluster.Election, work func(context.Context)) {
			_ = campaign(ctx, e, func(ctx context.Context, token lsn.LSN) error {
				work(ctx)
				return nil
			})
		},
		"consul": func(ctx context.Context, e *cluster.Election, work func(context.Context)) {
			_ = lock(ctx, e, func(lost <-chan struct{}) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go func() { <-lost; cancel() }()
				work(ctx)
			})
		},
	} {
		t.Log(name)
		failsOver(t, lead)
	}
}

func failsOver(t *testing.T, lead func(context.Context, *cluster.Election, func(context.Context))) {
	three := []cluster.NodeID{"a", "b", "c"}
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		var working atomic.Int32
		var who atomic.Value
		who.Store(cluster.NodeID(""))
		for _, id := range three {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			go lead(ctx, c.Node(id).Default(), func(ctx context.Context) {
				require.EqualValues(t, 1, working.Add(1))
				who.Store(id)
				<-ctx.Done()
				working.Add(-1)
			})
		}
		worker := func() cluster.NodeID { return who.Load().(cluster.NodeID) }
		c.Await("work", func() bool { return worker() != "" })
		time.Sleep(5 * time.Second)
		old := worker()
		c.Crash(old)
		c.Await("work elsewhere", func() bool { return worker() != old })
		require.True(t, slices.Contains(three, worker()))
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.AwaitCampaign = true }))
}

func TestReadsAreConfirmed(t *testing.T) {
	clustertest.Run(t, []cluster.NodeID{"a"}, func(t *testing.T, c *clustertest.Cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		e := c.Node("a").Default()
		l, err := e.Campaign(ctx)
		require.NoError(t, err)
		s := &service{read: func(key string) string { return "value of " + key }}
		value, err := s.get(ctx, l, "x")
		require.NoError(t, err)
		require.Equal(t, "value of x", value)
		l.Release()
		_, err = s.get(ctx, l, "x")
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		cancel()
	})
}

// A whole program, on real addresses, leads until its context ends.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := cluster.Config{Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(),
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0"}
	require.NoError(t, serve(ctx, cfg, func(ctx context.Context) {
		cancel()
		<-ctx.Done()
	}))
}

package embedding

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
)

// A leader assigns a shard, and crashes. Its successor knows that, adds to it, and d, which only
// joined, becomes a voter in place of the dead node.
func TestAssignmentsOutliveTheLeader(t *testing.T) {
	four := append(slices.Clone(three), "d")
	clustertest.Run(t, four, func(t *testing.T, c *clustertest.Cluster) {
		won := make(chan *cluster.Leadership, len(four))
		for _, id := range four {
			go func() {
				_ = c.Node(id).Default().Run(t.Context(), cluster.Callbacks{
					OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
						won <- l
						<-ctx.Done()
						return nil
					},
				})
			}()
		}
		require.NoError(t, assign(t.Context(), <-won, "x", "w1"))
		dead := c.AwaitLeader()
		c.Crash(dead)
		require.NoError(t, assign(t.Context(), <-won, "y", "w2"))
		require.NoError(t, move(t.Context(), c.Node("d"), dead, "d"))
		e := c.Node("d").Default()
		c.Await("d knows both", func() bool { // what a member knows may be old
			return string(e.Record().Value) == `{"x":"w1","y":"w2"}`
		})
		seen := e.Record()
		_, err := replace(t.Context(), e, seen, []byte("{}"))
		require.NoError(t, err)
		_, err = replace(t.Context(), e, seen, nil)
		require.ErrorIs(t, err, cluster.ErrConflict)
		c.Stop("d")
		show(t.Context(), e) // ends with the node
	}, clustertest.Configure(func(cfg *cluster.Config) {
		if cfg.Voters = three; cfg.Node == "d" {
			cfg.Voters, cfg.Join = nil, []string{"a.example:7400"}
		}
		cfg.Election.AwaitCampaign = true
	}))
}

// What the leader has read is confirmed while it leads, and not after that.
func TestReadsAreConfirmed(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		l, err := c.Node("a").Default().Campaign(t.Context())
		require.NoError(t, err)
		store := &Store{read: func(key string) string { return "the " + key }}
		value, err := store.Get(t.Context(), l, "value")
		require.NoError(t, err)
		require.Equal(t, "the value", value)
		l.Release()
		_, err = store.Get(t.Context(), l, "value")
		require.ErrorIs(t, err, cluster.ErrNotLeader)
	}, awaiting)
}

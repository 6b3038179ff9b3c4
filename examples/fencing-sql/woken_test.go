package main

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

// TestAWokenLeaderIsRefused stops the leader between taking a token and writing,
// until another node leads and has written. It is what the callbacks do, on three
// nodes, in virtual time.
func TestAWokenLeaderIsRefused(t *testing.T) {
	nodes := []cluster.NodeID{"a", "b", "c"}
	clustertest.Run(t, nodes, func(t *testing.T, c *clustertest.Cluster) {
		var lines testkit.Buffer
		log := hclog.New(&hclog.LoggerOptions{Output: &lines})
		table, err := open(t.Context(), filepath.Join(t.TempDir(), "test.db"))
		require.NoError(t, err)
		ran := make(chan error, len(nodes))
		for _, id := range nodes {
			go func() { ran <- c.Node(id).Default().Run(t.Context(), callbacks(table, log)) }()
		}
		fence := func() (newest lsn.LSN) {
			_, newest, err := table.Read(t.Context(), row)
			require.NoError(t, err)
			return newest
		}
		old := c.AwaitLeader()
		c.Await("its write", func() bool { return !fence().IsZero() })
		held, err := c.Node(old).NextLSN()
		require.NoError(t, err)

		c.Pause(old)
		c.Await("another leader's write", func() bool { return fence().Term > held.Term })
		newest := fence()
		c.Resume(old)
		write(t.Context(), held, table, log.With("node", old))
		require.Contains(t, lines.String(), "refused: a newer leader has written: node="+
			string(old)+" token="+held.String()+" newest="+newest.String())
		require.Equal(t, newest, fence())

		for _, id := range nodes {
			c.Stop(id)
			require.ErrorIs(t, <-ran, cluster.ErrClosed)
		}
		require.NoError(t, table.db.Close())
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.AwaitCampaign = true }))
}

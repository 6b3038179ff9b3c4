package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/lsn"
)

// A node reserves the first terms of many elections together, on the disk of a test from the second
// one on. When it stops it gives back what they did not use; after a crash they start above it.
func TestTheFirstTermsOfManyAreGivenBack(t *testing.T) {
	clustertest.Run(t, []cluster.NodeID{"a"}, func(t *testing.T, c *clustertest.Cluster) {
		term := func(election string) lsn.Term {
			e, err := c.Node("a").Election(election, cluster.ElectionConfig{})
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
			require.True(t, e.IsLeader())
			return e.Status().Term
		}
		require.EqualValues(t, 1, term("one"))
		require.EqualValues(t, 1, term("two"))
		c.Stop("a")
		c.Start("a")
		require.EqualValues(t, 2, term("one"))
		require.EqualValues(t, 1, term("three"))
		c.Crash("a")
		c.Start("a")
		require.Greater(t, term("one"), lsn.Term(2))
		require.Greater(t, term("three"), lsn.Term(1))
		require.Greater(t, term("four"), lsn.Term(1), "it may have been open before")
	})
}

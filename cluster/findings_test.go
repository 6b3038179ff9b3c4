package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/findings"
)

func TestStatusNamesWhatDiffersBetweenMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) {
			switch c.Node {
			case "b":
				c.Voters = []NodeID{"a", "b", "d"}
			case "c":
				c.Election.Timing = article
				c.Election.Timing.Lease = 1400 * time.Millisecond
			}
		}
		w.start("a", "b", "c")
		time.Sleep(time.Second)
		found := w.nodes["a"].Status().Findings
		require.Len(t, found, 2, "%v", found)
		require.Equal(t, findings.VotersDiffer, found[0].Kind)
		require.Equal(t, NodeID("b"), found[0].Peer)
		require.Contains(t, found[0].Detail, "d")
		require.Equal(t, findings.SettingsDiffer, found[1].Kind)
		require.Contains(t, found[1].Detail, "1.4s")
		require.NotEmpty(t, w.nodes["b"].Status().Findings)
		require.NotEmpty(t, w.nodes["c"].Status().Findings)
		w.closeAll()
	})
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(time.Minute)
		for _, n := range w.nodes {
			require.Empty(t, n.Status().Findings)
		}
		w.closeAll()
	})
}

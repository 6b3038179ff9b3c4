package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
)

func TestElectionsDoNotTouchEachOther(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		x := c.open("x", nil)
		c.open("y", nil)
		time.Sleep(election)
		from, other := c.leader("x").ID(), c.leader("y").ID()
		byDefault := c.leader().ID()
		to := c.others(c.Node(from))[0]
		require.NoError(t, x[from].Transfer(t.Context(), to))
		time.Sleep(time.Second)
		require.Equal(t, to, c.leader("x").ID())
		require.Equal(t, other, c.leader("y").ID())
		require.Equal(t, byDefault, c.leader().ID())

		token, err := x[to].NextLSN()
		require.NoError(t, err)
		require.Equal(t, x[to].Status().Term, token.Term)
	})
}

func TestAnElectionIsClosedAndOpenedAgainOnARunningNode(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		x := c.open("x", nil)
		time.Sleep(election)
		leader := c.leader("x").ID()
		term := x[leader].Status().Term

		require.NoError(t, x[leader].Close(t.Context()))
		require.NoError(t, x[leader].Close(t.Context()))
		require.False(t, x[leader].IsLeader())
		require.Equal(t, "DORMANT", x[leader].Status().Role)
		require.ErrorIs(t, x[leader].Transfer(t.Context(), ""), cluster.ErrClosed)
		time.Sleep(elector.Article().HeartbeatBroadcast)
		require.NotEmpty(t, c.Leader("x"), "it handed over")

		_, err := c.Node(leader).Lookup("x")
		require.ErrorIs(t, err, cluster.ErrNotOpen)
		again, err := c.Node(leader).Election("x", cluster.ElectionConfig{})
		require.NoError(t, err)
		found, err := c.Node(leader).Lookup("x")
		require.NoError(t, err)
		require.Equal(t, again, found)
		_, err = c.Node(leader).Election("x", cluster.ElectionConfig{})
		require.ErrorIs(t, err, cluster.ErrOpen)
		time.Sleep(election)
		require.Greater(t, again.Status().Term, term, "the term was on disk, and rose")
		require.NotEqual(t, leader, again.Status().Leader, "who comes back follows")
		require.NotEmpty(t, again.Status().Leader)
	})
}

func TestBadElectionsAreRefused(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		n := c.Node("a")
		for _, name := range []string{"", "a b", "a\u00a0b", "x\n", string(make([]byte, 256))} {
			_, err := n.Election(name, cluster.ElectionConfig{})
			require.ErrorContains(t, err, "1 to 255 bytes and no spaces")
		}
		_, err := n.Election("x", cluster.ElectionConfig{Quorum: 5})
		require.ErrorAs(t, err, new(*cluster.ConfigError))
		require.ErrorContains(t, err, "Quorum is 5")
		_, err = n.Election(cluster.DefaultGroup, cluster.ElectionConfig{})
		require.ErrorIs(t, err, cluster.ErrOpen)
		c.Stop("a")
		_, err = n.Election("x", cluster.ElectionConfig{})
		require.ErrorIs(t, err, cluster.ErrClosed)
	})
}

// An election that is closed and opened again at once must not start from an
// older term than the one that it voted in: it would vote twice.
func TestAReopenedElectionKnowsItsLastVote(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		n := c.Node("a")
		e, err := n.Election("x", cluster.ElectionConfig{})
		require.NoError(t, err)
		time.Sleep(election) // past the embargo
		slow := make(chan struct{})
		c.onWrite.Store(n.ID(), func(write func() error) error { <-slow; return write() })
		e.Hear("b", elector.Message{Kind: elector.ElectionProposal, Term: 7, SentAt: 1}, nil)
		// while the term of that vote is still on its way to the disk
		require.NoError(t, e.Close(t.Context()))
		opened := make(chan *cluster.Election)
		go func() {
			again, err := n.Election("x", cluster.ElectionConfig{})
			require.NoError(t, err)
			opened <- again
		}()
		synctest.Wait()
		_, err = n.Election("x", cluster.ElectionConfig{})
		require.ErrorIs(t, err, cluster.ErrOpen, "its name is taken while it is being opened")
		close(slow)
		again := <-opened
		require.EqualValues(t, 7, again.Status().Term)
	}, clustertest.Down("b", "c"))
}

package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// A node that opens and closes elections for as long as it runs keeps nothing of
// those that are closed: neither in memory nor on disk.
func TestClosedElectionsAreForgotten(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		const rounds, each = 5, 50
		time.Sleep(election)
		n := c.Node("a")
		for round := range rounds {
			var open []*cluster.Election
			for i := range each {
				e, err := n.Election(fmt.Sprintf("round%d-%d", round, i), cluster.ElectionConfig{})
				require.NoError(t, err)
				open = append(open, e)
			}
			time.Sleep(time.Second)
			for _, e := range open {
				require.True(t, e.Status().Leading)
				require.NoError(t, e.Close(t.Context()))
			}
			require.Len(t, n.Stats().Elections, 1)
			require.Len(t, n.Status().Groups, 1)
		}
		c.Stop("a")
		s, err := store.OpenExisting(c.DataDir("a"))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		never, err := s.Group("never opened")
		require.NoError(t, err)
		require.Equal(t, elector.Terms{Entered: rounds, Reserved: rounds}, never, "the highest term of all that were forgotten")
		for round := range rounds {
			for i := range each {
				term, err := s.Group(fmt.Sprintf("round%d-%d", round, i))
				require.NoError(t, err)
				require.Equal(t, never, term, "it has a record of its own")
			}
		}
	})
}

// A vote of an election that was closed is never given again, whatever was
// forgotten meanwhile.
func TestAVoteOfAForgottenElectionIsNotGivenAgain(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		n := c.Node("a")
		vote := func(e *cluster.Election, candidate cluster.NodeID, term lsn.Term) bool {
			time.Sleep(election) // past the embargo
			before := n.Stats().VotesGiven.Yes
			e.Hear(candidate, elector.Message{Kind: elector.ElectionProposal, Term: term, SentAt: 1}, nil)
			time.Sleep(time.Millisecond) // until it is on disk
			return n.Stats().VotesGiven.Yes > before
		}
		open := func(name string) *cluster.Election {
			e, err := n.Election(name, cluster.ElectionConfig{NotCandidate: true})
			require.NoError(t, err)
			return e
		}
		x := open("x")
		require.True(t, vote(x, "b", 7))
		require.NoError(t, x.Close(t.Context()))
		x = open("x")
		require.False(t, vote(x, "c", 7), "it went to b")
		require.True(t, vote(x, "c", 8))
		require.NoError(t, x.Close(t.Context()))
		c.Stop("a")
		c.Start("a")
		n = c.Node("a")
		x = open("x")
		require.False(t, vote(x, "b", 8), "it went to c, before the restart")
		require.True(t, vote(x, "b", 9))
	}, clustertest.Down("b", "c"))
}

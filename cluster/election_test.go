package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/stretchr/testify/require"
)

func TestElectionsDoNotTouchEachOther(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		x := c.open("x", nil)
		c.open("a", nil)
		time.Sleep(election)
		from, other := c.leader("x").ID(), c.leader("a").ID()
		byDefault := c.leader().ID()
		require.Equal(t, cluster.DefaultGroup, c.leader().Status().Groups[0].Group, "it comes first")
		to := c.others(c.Node(from))[0]
		require.NoError(t, x[from].Transfer(t.Context(), to))
		time.Sleep(time.Second)
		require.Equal(t, to, c.leader("x").ID())
		require.Equal(t, other, c.leader("a").ID())
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
		cfg := cluster.ElectionConfig{NotCandidate: true}
		e, err := n.Election("x", cfg)
		require.NoError(t, err)
		time.Sleep(election) // past the embargo
		slow := make(chan struct{})
		c.onWrite.Store(n.ID(), func(write func() error) error { <-slow; return write() })
		e.Hear("b", elector.Message{Kind: elector.ElectionProposal, Term: 7, SentAt: 1}, nil)
		// while the term of that vote is still on its way to the disk
		require.NoError(t, e.Close(t.Context()))
		opened := make(chan *cluster.Election)
		go func() {
			again, err := n.Election("x", cfg)
			require.NoError(t, err)
			opened <- again
		}()
		synctest.Wait()
		_, err = n.Election("x", cluster.ElectionConfig{})
		require.ErrorIs(t, err, cluster.ErrOpen, "its name is taken while it is being opened")
		close(slow)
		again := <-opened
		time.Sleep(election) // past the embargo
		given := n.Stats().VotesGiven.Yes
		again.Hear("c", elector.Message{Kind: elector.ElectionProposal, Term: 7, SentAt: 1}, nil)
		require.Equal(t, given, n.Stats().VotesGiven.Yes, "the vote in term 7 went to b")
		again.Hear("c", elector.Message{Kind: elector.ElectionProposal, Term: 8, SentAt: 1}, nil)
		time.Sleep(time.Millisecond) // until the term is on disk
		require.Equal(t, given+1, n.Stats().VotesGiven.Yes)
	}, clustertest.Down("b", "c"))
}

func TestAnElectionIsClosedAsSoonAsTheWorkOfItsRunHasStopped(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		x := c.open("x", nil)
		ended := make(chan error, len(x))
		for _, e := range x {
			go func() { ended <- e.Run(t.Context(), cluster.Callbacks{OnStartedLeading: untilToldToStop}) }()
		}
		time.Sleep(election)
		began := time.Now()
		require.NoError(t, x[c.leader("x").ID()].Close(t.Context()))
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, <-ended, cluster.ErrClosed)
	})
}

func TestAHastyCloseWithoutWorkIsNoError(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			for _, e := range c.open("x", nil) {
				require.NoError(t, e.Close(ctx))
			}
		}
	})
}

// A node that opens and closes elections for as long as it runs keeps nothing of
// those that are closed: neither in memory nor on disk.
func TestClosedElectionsAreForgotten(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		const rounds, each = 5, 50
		var highest lsn.Term
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
				highest = max(highest, e.Status().Term)
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
		require.Equal(t, elector.Terms{Reserved: highest}, never.Terms,
			"it may have voted up to the highest term of all that were forgotten")
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

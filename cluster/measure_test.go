package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/scouting"
)

func TestAnElectionIsCountedOnEverySide(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		st := leader.Stats()
		require.Equal(t, uint64(1), st.LeaderChanges[elector.Elected])
		require.Zero(t, st.LeaderChanges[elector.LeaderFound])
		require.GreaterOrEqual(t, st.ScoutingReceived.Yes, uint64(1))
		require.GreaterOrEqual(t, st.VotesReceived.Yes, uint64(1))
		require.Equal(t, 3, st.VotersReachable)
		require.Equal(t, 3, st.Voters)
		for _, p := range []string{"discovery", "back-off", "scouting", "proposal"} {
			require.NotZero(t, st.Phases[p].Count(), p)
		}
		require.InDelta(t, 4, st.Phases["discovery"].Sum, 0.001, "the initial wait, not the back-off")
		require.NotZero(t, st.StoreWrite.Count(), "its own term")
		require.Zero(t, st.Leaderless.Count(), "none was lost yet")
		requireLeading(t, st.Elections[0], leader)
		for _, id := range c.others(leader) {
			st := c.Node(id).Stats()
			require.Equal(t, uint64(1), st.LeaderChanges[elector.LeaderFound])
			require.Equal(t, uint64(1), st.Elections[0].Leaderships)
			require.Equal(t, uint64(1), st.ScoutingGiven.Yes+noes(st.ScoutingGiven))
			require.Equal(t, uint64(1), st.VotesGiven.Yes+noes(st.VotesGiven))
			require.Equal(t, leader.ID(), st.Elections[0].Leader)
			require.Equal(t, elector.Follower, st.Elections[0].Role)
			require.Zero(t, st.Elections[0].LeaseLeft)
			require.Equal(t, uint64(1), st.Phases["first-heartbeat"].Count())
		}
	})
}

func requireLeading(t *testing.T, e cluster.ElectionStats, leader *cluster.Node) {
	next, err := leader.NextLSN()
	require.NoError(t, err)
	require.Equal(t, cluster.DefaultGroup, e.Group)
	require.True(t, e.Leading)
	require.Equal(t, next.Term, e.Term)
	require.Equal(t, 2, e.Quorum)
	require.Equal(t, uint64(1), e.Leaderships)
	require.Positive(t, e.LeaseLeft)
	require.LessOrEqual(t, e.LeaseLeft.Duration(), elector.Article().Lease)
	require.Equal(t, next, leader.Stats().Elections[0].LSN, "as issued, whatever the followers know")
}

func noes(a cluster.Answers) (n uint64) {
	for _, c := range a.No {
		n += c
	}
	return n
}

func TestALostLeaderLeavesAGap(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		first := c.elect()
		c.Isolate(first.ID())
		time.Sleep(election)
		st := first.Stats()
		require.Equal(t, uint64(1), st.LeaderChanges[elector.LeaseExpired])
		require.Equal(t, 1, st.VotersReachable)
		require.Empty(t, st.Elections[0].Leader)
		require.False(t, st.Elections[0].Leading)
		require.Zero(t, st.Leaderless.Count(), "it is not over")
		require.NotZero(t, st.Phases["scouting"].Count(), "it asks, and nobody answers")
		for _, id := range c.others(first) {
			st := c.Node(id).Stats()
			require.Equal(t, uint64(1), st.Leaderless.Count())
			require.Positive(t, st.Leaderless.Sum)
			require.Less(t, st.Leaderless.Sum, election.Seconds())
			require.Equal(t, uint64(2), st.Elections[0].Leaderships)
			require.Equal(t, 2, st.VotersReachable)
		}
	})
}

func TestNoesAreCountedByCause(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		lonely, other := c.others(leader)[0], c.others(leader)[1]
		c.Faults(leader.ID()).Loss(lonely, 1) // its heartbeats are lost
		time.Sleep(election)
		require.NotZero(t, c.Node(lonely).Stats().ScoutingReceived.No[scouting.CauseLeader])
		require.NotZero(t, c.Node(other).Stats().ScoutingGiven.No[scouting.CauseLeader])
		require.NotZero(t, c.Node(lonely).Stats().LeaderChanges[elector.LeaderNoHeartbeat])
	})
}

func TestWhatIsLeftOfTheLeaseShrinksWithTheLinks(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader, before := c.leader(), c.leader().Stats().LeaseLeft
		require.NotZero(t, before.Count())
		// Each heartbeat finds all left but its period, 500 ms of 1.4 s. The first one finds
		// all, or has nothing to renew if the votes came as late as its acks.
		require.GreaterOrEqual(t, before.Below(.7), before.Count()-1)
		require.Zero(t, before.Below(.6))
		for _, id := range c.others(leader) {
			c.Faults(id).Delay(leader.ID(), 820*time.Millisecond, 0) // of 1.4 s
		}
		time.Sleep(election)
		require.True(t, leader.IsLeader(), "slow, but not too slow")
		require.NotZero(t, leader.Stats().LeaseLeft.Below(.1))
	})
}

func TestOverdueWorkShows(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		work, err := leader.Default().Campaign(t.Context())
		require.NoError(t, err)
		require.False(t, leader.Stats().Elections[0].WorkOverdue)
		c.Isolate(leader.ID())
		<-work.Done()
		synctest.Wait()
		require.True(t, leader.Stats().Elections[0].WorkOverdue)
		work.Release()
		require.False(t, leader.Stats().Elections[0].WorkOverdue)
	})
}

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

// lose kills the lost for good, and stops the others and declares the emergency
// on each.
func (w *world) lose(lost ...NodeID) {
	for _, id := range lost {
		w.crash(id)
	}
	w.closeAll()
	e := Emergency{Cluster: DefaultCluster, Voters: w.voters, Lost: lost, Reason: "flood"}
	for _, id := range without(w.voters, lost) {
		require.NoError(w.t, DeclareLost(filepath.Join(w.dir, string(id)), e))
	}
}

// ledBefore runs the world for a while and returns the newest fencing token.
func (w *world) ledBefore() lsn.LSN {
	w.start(w.voters...)
	time.Sleep(election)
	token, err := w.leader().NextLSN()
	require.NoError(w.t, err)
	return token
}

func TestSurvivorsGoOnAfterAnEmergency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, five...)
		token := w.ledBefore()
		w.lose("c", "d", "e")
		for range 2 { // the second start is like the first
			w.start("a", "b")
			time.Sleep(election)
			leader := w.leader()
			next, err := leader.NextLSN()
			require.NoError(t, err)
			require.Positive(t, next.Compare(token), "fencing tokens rise: %s after %s", next, token)
			require.Greater(t, next.Term, lsn.Term(1_000_000_000), "and are above what the lost may have used")
			token = next

			st := leader.Status()
			require.Equal(t, []NodeID{"a", "b"}, st.Groups[0].Voters)
			require.Equal(t, 2, st.Groups[0].Quorum)
			require.Contains(t, st.Groups[0].Explanation, "this node leads, backed by 2 of 2 voters (2 needed); EMERGENCY: c, d, e declared lost at 2000-01-01T")
			require.Len(t, st.Emergencies, 1)
			require.Equal(t, []NodeID{"c", "d", "e"}, st.Emergencies[0].Lost)
			require.Equal(t, "flood", st.Emergencies[0].Reason)
			w.closeAll()
		}
	})
}

// The lost had leaders in terms of which the survivors never heard.
func TestFencingTokensRiseAboveThoseOfTheLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, five...)
		w.ledBefore()
		w.isolate("a")
		w.isolate("b")
		time.Sleep(2 * election)
		var newest lsn.LSN
		for _, to := range []NodeID{"c", "d", "e", "c", "d"} {
			for _, id := range []NodeID{"c", "d", "e"} {
				if n := w.nodes[id]; n.IsLeader() && id != to {
					require.NoError(t, n.Transfer(t.Context(), to))
				}
			}
			require.True(t, w.nodes[to].IsLeader())
			token, err := w.nodes[to].NextLSN()
			require.NoError(t, err)
			newest = token
			time.Sleep(time.Second) // its followers ack, so it can hand over
		}
		for _, id := range []NodeID{"a", "b"} {
			require.Less(t, w.nodes[id].machine().Term+2, newest.Term, "%s never heard of it", id)
		}
		w.lose("c", "d", "e")
		w.start("a", "b")
		time.Sleep(election)
		token, err := w.leader().NextLSN()
		require.NoError(t, err)
		require.Positive(t, token.Compare(newest), "%s after %s", token, newest)
		w.closeAll()
	})
}

func TestLostNodeThatComesBackIsNotCountedNotElectedAndCannotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, five...)
		w.ledBefore()
		w.lose("c", "d", "e")
		w.edit = func(c *Config) { c.Election.Priority = map[NodeID]int{"c": 9}[c.Node] }
		w.start("a", "b")
		time.Sleep(election)
		leader := w.leader()
		other := w.nodes[without([]NodeID{"a", "b"}, []NodeID{leader.cfg.Node})[0]]
		term := leader.Status().Groups[0].Term

		w.start("c") // with its old disk and the old configuration
		time.Sleep(10 * time.Minute)
		require.Same(t, leader, w.leader(), "nobody is disturbed, c follows")
		st := leader.Status()
		require.Equal(t, term, st.Groups[0].Term)
		require.Equal(t, []NodeID{"a", "b"}, st.Groups[0].Supporters, "c does not count")
		require.Positive(t, st.Anomalies[anomalyLostIsBack], "it is seen")
		require.ErrorContains(t, leader.Transfer(t.Context(), "c"), "not one of the voters")

		w.isolate(other.cfg.Node)
		for range 120 {
			time.Sleep(time.Second)
			require.False(t, w.nodes["c"].IsLeader(), "nobody elects c")
		}
		require.False(t, leader.IsLeader(), "c is no replacement for a voter")
		require.Contains(t, leader.Status().Groups[0].Explanation, "2 of 2 voters needed, 1 reachable")
		w.closeAll()
	})
}

// With all of the lost back there would be a quorum of the old voters. As long as
// they hear the survivors' leader they follow it.
func TestLostQuorumThatComesBackFollowsALeaderThatItHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, five...)
		w.ledBefore()
		w.lose("c", "d", "e")
		w.start("a", "b")
		time.Sleep(election)
		leader := w.leader()
		w.start("c", "d", "e")
		for range 120 {
			time.Sleep(time.Second)
			require.Same(t, leader, w.leader())
		}
		w.closeAll()
	})
}

func TestSoleSurvivorLeadsAloneInEveryElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.ledBefore()
		w.lose("b", "c")
		w.start("a")
		time.Sleep(time.Second)
		require.True(t, w.nodes["a"].IsLeader())
		e, err := w.nodes["a"].Election("payments", ElectionConfig{})
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.True(t, e.Status().Leading)
		require.Greater(t, e.Status().Term, lsn.Term(1_000_000_000), "an election that this node never knew")
		w.closeAll()
	})
}

func TestReadmittedNodeVotesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, five...)
		w.ledBefore()
		w.lose("c", "d", "e")
		edit := w.edit
		w.edit = func(c *Config) {
			if c.Node > "b" {
				c.DataDir += "-replaced"
			}
		}
		for i, back := range []NodeID{"c", "d", "e"} {
			for _, id := range []NodeID{"a", "b"} {
				require.NoError(t, Readmit(filepath.Join(w.dir, string(id)), DefaultCluster, back))
			}
			w.start("a", "b")
			w.start([]NodeID{"c", "d", "e"}[:i+1]...)
			time.Sleep(2 * election)
			st := w.leader().Status()
			require.Contains(t, st.Groups[0].Voters, back)
			require.Contains(t, st.Groups[0].Supporters, back)
			w.closeAll()
		}
		w.edit = edit
		w.start("a")
		st := w.nodes["a"].Status()
		require.Equal(t, five, st.Groups[0].Voters)
		require.NotContains(t, st.Groups[0].Explanation, "EMERGENCY")
		require.Len(t, st.Emergencies, 1, "it is on record ever after")
		require.Empty(t, st.Emergencies[0].Missing())
		w.closeAll()
	})
}

func TestNodeDoesNotStartWhereAnEmergencyForbidsIt(t *testing.T) {
	declared := func(node string, retire bool, lost ...NodeID) Config {
		cfg := Config{Node: NodeID(node), Voters: five, DataDir: t.TempDir(), MeshAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0"}
		n, err := Start(context.Background(), cfg)
		require.NoError(t, err)
		require.NoError(t, n.Close(context.Background()))
		require.NoError(t, DeclareLost(cfg.DataDir, Emergency{Cluster: DefaultCluster, Voters: five, Lost: lost, Retire: retire}))
		return cfg
	}
	retired := declared("c", true, "c", "d", "e")
	quorum := declared("a", false, "c", "d", "e")
	quorum.Election.Quorum = 3
	nobody := declared("a", false, "c", "d", "e")
	nobody.Voters = []NodeID{"c", "d"}
	for want, cfg := range map[string]Config{
		"that of a voter that was declared lost (c, d, e declared lost at ":    retired,
		"quorum is 3, but must be at most 2: of the voters c, d, e were de":    quorum,
		"all voters of the configuration, c, d, were declared lost":            nobody,
		fmt.Sprintf("start of node c: the data directory %s", retired.DataDir): retired,
	} {
		_, err := Start(context.Background(), cfg)
		require.ErrorContains(t, err, want)
	}
	_, err := Start(context.Background(), quorum)
	require.Error(t, err)
	quorum.Election.Quorum = 0
	n, err := Start(context.Background(), quorum)
	require.NoError(t, err, "a refused start leaves nothing behind")
	_, err = n.Election("x", ElectionConfig{Quorum: 3})
	require.ErrorContains(t, err, "Election.Quorum is 3")
	require.NoError(t, n.Close(context.Background()))
}

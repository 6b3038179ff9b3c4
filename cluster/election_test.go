package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// open opens an election on every node, with a rank of its own on each.
func (w *world) open(group string, priority map[NodeID]int) map[NodeID]*Election {
	elections := map[NodeID]*Election{}
	for id, n := range w.nodes {
		e, err := n.Election(group, ElectionConfig{Priority: priority[id]})
		require.NoError(w.t, err)
		elections[id] = e
	}
	return elections
}

// leaders are the nodes that lead in an election.
func leaders(elections map[NodeID]*Election) (ids []NodeID) {
	for id, e := range elections {
		if e.IsLeader() {
			ids = append(ids, id)
		}
	}
	return ids
}

// leaderOf is the one node that leads in an election on which all agree.
func leaderOf(t *testing.T, elections map[NodeID]*Election) NodeID {
	t.Helper()
	ids := leaders(elections)
	require.Len(t, ids, 1)
	for id, e := range elections {
		require.Equal(t, ids[0], e.Status().Leader, "leader of %s as %s sees it", e.Group(), id)
	}
	return ids[0]
}

func TestAHundredElectionsRunBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		var all []map[NodeID]*Election
		for i := range 100 {
			all = append(all, w.open(fmt.Sprintf("g%d", i), nil))
		}
		time.Sleep(election)
		led := map[NodeID]int{}
		for _, elections := range all {
			led[leaderOf(t, elections)]++
		}
		require.Greater(t, len(led), 1, "chance spreads the leaders")
		victim := leaderOf(t, all[0])
		w.crash(victim)
		time.Sleep(election)
		for _, elections := range all {
			delete(elections, victim)
			leaderOf(t, elections)
		}
		w.closeAll()
	})
}

func TestElectionsDoNotTouchEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		x, y := w.open("x", nil), w.open("y", nil)
		time.Sleep(election)
		from, other := leaderOf(t, x), leaderOf(t, y)
		byDefault := w.leader().cfg.Node
		to := w.others(w.nodes[from])[0]
		require.NoError(t, x[from].Transfer(t.Context(), to))
		time.Sleep(time.Second)
		require.Equal(t, to, leaderOf(t, x))
		require.Equal(t, other, leaderOf(t, y))
		require.Equal(t, byDefault, w.leader().cfg.Node)

		token, err := x[to].NextLSN()
		require.NoError(t, err)
		require.Equal(t, x[to].Status().Term, token.Term)
		w.closeAll()
	})
}

func TestAnElectionIsClosedAndOpenedAgainOnARunningNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		x := w.open("x", nil)
		time.Sleep(election)
		leader := leaderOf(t, x)
		term := x[leader].Status().Term

		require.NoError(t, x[leader].Close(t.Context()))
		require.NoError(t, x[leader].Close(t.Context()))
		require.False(t, x[leader].IsLeader())
		require.Equal(t, "DORMANT", x[leader].Status().Role)
		require.ErrorIs(t, x[leader].Transfer(t.Context(), ""), ErrClosed)
		time.Sleep(elector.Article().HeartbeatBroadcast)
		delete(x, leader)
		require.Len(t, leaders(x), 1, "it handed over")

		_, err := w.nodes[leader].Lookup("x")
		require.ErrorIs(t, err, ErrNotOpen)
		again, err := w.nodes[leader].Election("x", ElectionConfig{})
		require.NoError(t, err)
		found, err := w.nodes[leader].Lookup("x")
		require.NoError(t, err)
		require.Equal(t, again, found)
		_, err = w.nodes[leader].Election("x", ElectionConfig{})
		require.ErrorIs(t, err, ErrOpen)
		time.Sleep(election)
		require.Greater(t, again.Status().Term, term, "the term was on disk, and rose")
		require.NotEqual(t, leader, again.Status().Leader, "who comes back follows")
		require.NotEmpty(t, again.Status().Leader)
		w.closeAll()
	})
}

func TestAnElectionHasCandidatesOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		only := map[NodeID]*Election{}
		for id, n := range w.nodes {
			e, err := n.Election("only-b", ElectionConfig{NotCandidate: id != "b"})
			require.NoError(t, err)
			only[id] = e
		}
		time.Sleep(2 * election)
		require.Equal(t, NodeID("b"), leaderOf(t, only))
		w.closeAll()
	})
}

func TestBadElectionsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		n := w.nodes["a"]
		for _, name := range []string{"", "a b", "x\n", string(make([]byte, 256))} {
			_, err := n.Election(name, ElectionConfig{})
			require.ErrorContains(t, err, "1 to 255 bytes and no spaces")
		}
		_, err := n.Election("x", ElectionConfig{Quorum: 5})
		require.ErrorAs(t, err, new(*ConfigError))
		require.ErrorContains(t, err, "Quorum is 5")
		_, err = n.Election(DefaultGroup, ElectionConfig{})
		require.ErrorIs(t, err, ErrOpen)
		w.close("a")
		_, err = n.Election("x", ElectionConfig{})
		require.ErrorIs(t, err, ErrClosed)
	})
}

// An election that is closed and opened again at once must not start from an
// older term than the one that it voted in: it would vote twice.
func TestAReopenedElectionKnowsItsLastVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a")
		n := w.nodes["a"]
		e, err := n.Election("x", ElectionConfig{})
		require.NoError(t, err)
		time.Sleep(election) // past the embargo
		slow := make(chan struct{})
		write := n.persister.write
		n.persister.mu.Lock()
		n.persister.write = func(terms map[string]lsn.Term) error { <-slow; return write(terms) }
		n.persister.mu.Unlock()
		n.call(func() {
			n.step(e.g, elector.Received{From: "b", Message: elector.Message{Kind: elector.ElectionProposal, Term: 7, SentAt: 1}})
		})
		require.NoError(t, e.Close(t.Context())) // while the term of that vote is still on its way to the disk
		opened := make(chan *Election)
		go func() {
			again, err := n.Election("x", ElectionConfig{})
			require.NoError(t, err)
			opened <- again
		}()
		synctest.Wait()
		_, err = n.Election("x", ElectionConfig{})
		require.ErrorIs(t, err, ErrOpen, "its name is taken while it is being opened")
		close(slow)
		again := <-opened
		require.EqualValues(t, 7, again.Status().Term)
		w.closeAll()
	})
}

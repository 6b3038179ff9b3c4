package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// A node that opens and closes elections for as long as it runs keeps nothing of
// those that are closed: neither in memory nor on disk.
func TestClosedElectionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, each = 5, 50
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(election)
		n := w.nodes["a"]
		for round := range rounds {
			var open []*Election
			for i := range each {
				e, err := n.Election(fmt.Sprintf("round%d-%d", round, i), ElectionConfig{})
				require.NoError(t, err)
				open = append(open, e)
			}
			time.Sleep(time.Second)
			for _, e := range open {
				require.True(t, e.Status().Leading)
				require.NoError(t, e.Close(t.Context()))
			}
			n.view(func() {
				require.Empty(t, n.closed)
				require.Len(t, n.groups, 1)
				require.Len(t, n.ticks, 1)
			})
			require.Len(t, n.Stats().Elections, 1)
			require.Len(t, n.Status().Groups, 1)
		}
		w.closeAll()
		s, err := store.OpenExisting(filepath.Join(w.dir, "a"))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		never, err := s.Group("never opened")
		require.NoError(t, err)
		require.EqualValues(t, rounds, never, "the highest term of all that were forgotten")
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
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a")
		n := w.nodes["a"]
		vote := func(e *Election, candidate NodeID, term lsn.Term) (given elector.State) {
			time.Sleep(election) // past the embargo
			n.call(func() {
				n.step(e.g, elector.Received{From: candidate, Message: elector.Message{
					Kind: elector.ElectionProposal, Term: term, SentAt: 1,
				}})
				given = e.g.machine.State()
			})
			return given
		}
		open := func(name string) *Election {
			e, err := n.Election(name, ElectionConfig{NotCandidate: true})
			require.NoError(t, err)
			return e
		}
		x := open("x")
		require.Equal(t, NodeID("b"), vote(x, "b", 7).Vote)
		require.NoError(t, x.Close(t.Context()))
		x = open("x")
		require.Empty(t, vote(x, "c", 7).Vote, "it went to b")
		require.Equal(t, NodeID("c"), vote(x, "c", 8).Vote)
		require.NoError(t, x.Close(t.Context()))
		w.close("a")
		w.start("a")
		n = w.nodes["a"]
		x = open("x")
		require.Empty(t, vote(x, "b", 8).Vote, "it went to c, before the restart")
		require.Equal(t, NodeID("b"), vote(x, "b", 9).Vote)
		w.closeAll()
	})
}

func TestAClosedElectionIsKnownUntilItsWorkIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		x := w.open("x", nil)
		time.Sleep(election)
		leader := leaderOf(t, x)
		work, err := x[leader].Campaign(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, x[leader].Close(canceled), "guarded work had not stopped")
		n := w.nodes[leader]
		time.Sleep(election)
		_, err = n.Election("x", ElectionConfig{})
		require.ErrorIs(t, err, ErrCampaigning)
		work.Release()
		n.view(func() { require.Empty(t, n.closed) })
		again, err := n.Election("x", ElectionConfig{})
		require.NoError(t, err)
		require.NoError(t, again.Close(context.Background()))
		w.closeAll()
	})
}

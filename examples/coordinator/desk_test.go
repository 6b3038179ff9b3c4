package main

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/examples/coordinator/audit"
	"github.com/bmqelect/bmqelect/lsn"
)

// atDesk runs a test of a leader of term 2 with three partitions, whose grants last
// for a second, in virtual time.
func atDesk(t *testing.T, f func(t *testing.T, d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j, err := audit.Open(filepath.Join(t.TempDir(), "journal"), "a")
		require.NoError(t, err)
		defer j.Close()
		f(t, newDesk(&forger{at(2, 0)}, j, 3, time.Second))
	})
}

// asks lets a worker ask, and returns what it is granted.
func asks(t *testing.T, d *desk, node cluster.NodeID, stands ...standing) map[int]lsn.LSN {
	t.Helper()
	a, err := d.answer(question{Node: node, Partitions: append(stands, make([]standing, 3-len(stands))...)})
	require.NoError(t, err)
	for _, l := range a.Assigned {
		require.True(t, l.Less(a.Stamp), "%s in an answer with stamp %s", l, a.Stamp)
	}
	return a.Assigned
}

func inForce(l lsn.LSN) standing { return standing{Newest: l, InForce: true} }

func TestANewLeaderTakesOverWhatIsInForceAndAssignsNothingYet(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		require.Equal(t, map[int]lsn.LSN{1: at(1, 5)}, asks(t, d, "b", standing{}, inForce(at(1, 5))))
		time.Sleep(expiry(time.Second) - time.Nanosecond)
		require.Empty(t, asks(t, d, "c"), "a predecessor may have granted the others to somebody")
		time.Sleep(time.Nanosecond)
		require.Equal(t, map[int]lsn.LSN{0: at(2, 3), 1: at(2, 4), 2: at(2, 5)}, asks(t, d, "c"), "b has not asked again")
	})
}

// served is a desk at which b has all three.
func served(t *testing.T, d *desk) {
	time.Sleep(2 * time.Second)
	require.Equal(t, map[int]lsn.LSN{0: at(2, 1), 1: at(2, 2), 2: at(2, 3)}, asks(t, d, "b"))
}

func TestAPartitionIsFreeWhenItsWorkerSaysSo(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		served(t, d)
		all := []standing{inForce(at(2, 1)), inForce(at(2, 2)), inForce(at(2, 3))}
		require.Len(t, asks(t, d, "b", all...), 3)
		require.Empty(t, asks(t, d, "c"), "b has all")
		require.Equal(t, map[int]lsn.LSN{1: at(2, 2), 2: at(2, 3)}, asks(t, d, "b", all...), "it is to give one up")
		require.Empty(t, asks(t, d, "c"), "b has not said that it has")
		all[0].InForce = false
		asks(t, d, "b", all...)
		require.Contains(t, asks(t, d, "c"), 0)
	})
}

func TestAnOldQuestionFreesNothing(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		served(t, d)
		require.Len(t, asks(t, d, "b", standing{Newest: at(1, 9)}), 3, "asked before the answer came")
		require.Equal(t, at(2, 1), d.books[0].lsn)
		asks(t, d, "b", standing{Newest: at(2, 1)})
		require.NotEqual(t, at(2, 1), d.books[0].lsn, "that one has ended")
	})
}

func TestAWorkerThatIsSilentLosesWhatItHasWhenItsGrantsHaveExpired(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		served(t, d)
		time.Sleep(expiry(time.Second) - time.Nanosecond)
		require.Empty(t, asks(t, d, "c"))
		time.Sleep(time.Nanosecond)
		require.Len(t, asks(t, d, "c"), 3)
	})
}

func TestOfTwoThatClaimOnePartitionTheNewerIsHeeded(t *testing.T) {
	for _, order := range [][]cluster.NodeID{{"b", "c"}, {"c", "b"}} {
		atDesk(t, func(t *testing.T, d *desk) {
			claims := map[cluster.NodeID]standing{"b": inForce(at(1, 5)), "c": inForce(at(1, 6))}
			for _, node := range order {
				asks(t, d, node, claims[node])
			}
			require.Empty(t, asks(t, d, "b", claims["b"]), "its question was long on its way")
			require.Equal(t, map[int]lsn.LSN{0: at(1, 6)}, asks(t, d, "c", claims["c"]))
		})
	}
}

func TestAssignmentsAreOnRecordOrNotMade(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		require.NoError(t, d.journal.Close())
		time.Sleep(2 * time.Second)
		_, err := d.answer(question{Node: "b"})
		require.ErrorContains(t, err, "journal of node a: ")
		require.Empty(t, d.load())
	})
}

func TestALeaderWithoutTokensAnswersNothing(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		served(t, d)
		d.tokens = &forger{at(2, 1<<64-1)}
		_, err := d.answer(question{Node: "b"})
		require.ErrorIs(t, err, lsn.ErrOverflow)
	})
}

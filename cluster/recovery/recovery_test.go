package recovery_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/recovery"
)

var five, left, lost = ids("a b c d e"), ids("a b"), ids("c d e")

// ran returns dir after a run of node a of the cluster "bees" on it.
func ran(t *testing.T, dir string) string {
	t.Helper()
	s, err := store.Open(dir, store.Owner{Cluster: "bees", Node: "a"})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return dir
}

// ids returns the nodes that a text names.
func ids(names string) (all []cluster.NodeID) {
	for name := range strings.FieldsSeq(names) {
		all = append(all, cluster.NodeID(name))
	}
	return all
}

func TestEmergencyIsRefusedUnlessItIsDue(t *testing.T) {
	for want, e := range map[string]recovery.Emergency{
		"no voter is named as lost":                 {Voters: five},
		"c is named twice":                          {Voters: five, Lost: ids("c d c")},
		"b is named twice":                          {Voters: ids("a b b"), Lost: ids("b")},
		"z: not among the voters a, b, c, d, e":     {Voters: five, Lost: ids("c d z")},
		"a, which is not among the voters b, c":     {Voters: ids("b c"), Lost: ids("b")},
		"a, which is named as lost: move it away":   {Voters: five, Lost: ids("a b c")},
		"a, which is not named as lost":             {Voters: five, Lost: ids("b c d"), Retire: true},
		"no voter would be left":                    {Voters: five, Lost: five, Retire: true},
		"not needed: a, b, c are 3 of 5 voters, an": {Voters: five, Lost: ids("d e")},
		`belongs to node "a" of cluster "bees", no`: {Node: "b", Voters: five, Lost: lost},
		`this, is "bees", not "wasps"`:              {Cluster: "wasps", Voters: five, Lost: lost},
		`this, is "bees", not ""`:                   {Voters: five, Lost: lost},
	} {
		t.Run(want, func(t *testing.T) {
			dir := ran(t, t.TempDir())
			err := recovery.DeclareLost(dir, e)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, dir)
			found, err := recovery.Emergencies(dir)
			require.NoError(t, err)
			require.Empty(t, found)
		})
	}
}

func TestEmergencyOnAnEvenNumberNeedsHalfToBeLost(t *testing.T) {
	four := five[:4]
	dir := ran(t, t.TempDir())
	_, err := recovery.CheckLost(dir, recovery.Emergency{Voters: four, Lost: ids("d")})
	require.ErrorContains(t, err, "not needed: a, b, c are 3 of 4 voters, and 3 elect")
	outcome, err := recovery.CheckLost(dir, recovery.Emergency{Voters: four,
		Lost: ids("d c")})
	require.NoError(t, err)
	require.Equal(t, recovery.Outcome{Cluster: "bees", Node: "a", Before: four,
		Voters: ids("a b"), Quorum: 2}, outcome)
}

func TestEmergencyNeedsAStoppedNodeThatHasRun(t *testing.T) {
	e := recovery.Emergency{Cluster: "bees", Voters: five, Lost: lost}
	require.ErrorContains(t, recovery.DeclareLost(filepath.Join(t.TempDir(), "x"), e),
		"no data directory of a node that has run")
	dir := t.TempDir()
	s, err := store.Open(dir, store.Owner{Cluster: "bees", Node: "a"})
	require.NoError(t, err)
	require.ErrorIs(t, recovery.DeclareLost(dir, e), store.ErrLocked)
	require.ErrorContains(t, recovery.Readmit(dir, "bees", "c"), "stop the node first")
	require.NoError(t, s.Close())
	require.NoError(t, recovery.DeclareLost(dir, e))
}

func TestSecondEmergencyCountsFromTheFirst(t *testing.T) {
	dir, seven := ran(t, t.TempDir()), append(five[:5:5], "f", "g")
	e := recovery.Emergency{Cluster: "bees", Voters: seven, Lost: ids("g f e d"), Reason: "fire"}
	require.NoError(t, recovery.DeclareLost(dir, e))
	require.ErrorContains(t, recovery.DeclareLost(dir, e), "g, f, e, d: declared lost here already")
	e.Lost, e.Reason = ids("b"), "more fire"
	require.ErrorContains(t, recovery.DeclareLost(dir, e), "not needed: a, c are 2 of 3 voters")
	e.Lost = ids("b c")
	require.NoError(t, recovery.DeclareLost(dir, e))

	found, err := recovery.Emergencies(dir)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "fire", found[0].Reason)
	require.Equal(t, seven, found[0].Voters)
	require.Equal(t, ids("a b c"), found[1].Voters, "who could vote by then")
	require.Equal(t, ids("b c"), found[1].Missing())
	require.WithinDuration(t, time.Now(), found[1].Time, time.Minute)
}

func TestVotersAreReadmittedOneAtATime(t *testing.T) {
	dir := ran(t, t.TempDir())
	require.NoError(t, recovery.DeclareLost(dir, recovery.Emergency{Cluster: "bees", Voters: five,
		Lost: lost}))
	require.ErrorContains(t, recovery.Readmit(dir, "wasps", "c"), `"bees", not "wasps"`)
	require.ErrorContains(t, recovery.Readmit(dir, "bees", "b"), "not recorded as lost")
	require.NoError(t, recovery.Readmit(dir, "bees", "c"))
	require.ErrorContains(t, recovery.Readmit(dir, "bees", "d"),
		"node a has not run since c was readmitted")
	ran(t, dir)
	require.NoError(t, recovery.Readmit(dir, "bees", "d"))

	found, err := recovery.Emergencies(dir)
	require.NoError(t, err)
	require.Equal(t, lost, found[0].Lost, "what was lost stays on record")
	require.Equal(t, ids("e"), found[0].Missing())
	require.Equal(t, cluster.NodeID("d"), found[0].Readmitted[1].Node)
	require.WithinDuration(t, time.Now(), found[0].Readmitted[1].Time, time.Minute)
}

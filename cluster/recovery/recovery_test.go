package cluster

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/store"
)

var five = []NodeID{"a", "b", "c", "d", "e"}

// ranOnce is the data directory of node a of the cluster "bees", which has run.
func ranOnce(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	boot(t, dir)
	return dir
}

// boot is a run of node a on dir.
func boot(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(dir, store.Owner{Cluster: "bees", Node: "a"})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestEmergencyIsRefusedUnlessItIsDue(t *testing.T) {
	for want, e := range map[string]Emergency{
		"no voter is named as lost":                 {Voters: five},
		"c is named twice":                          {Voters: five, Lost: []NodeID{"c", "d", "c"}},
		"b is named twice":                          {Voters: []NodeID{"a", "b", "b"}, Lost: []NodeID{"b"}},
		"z: not among the voters a, b, c, d, e":     {Voters: five, Lost: []NodeID{"c", "d", "z"}},
		"a, which is not among the voters b, c":     {Voters: []NodeID{"b", "c"}, Lost: []NodeID{"b"}},
		"a, which is named as lost: move it away":   {Voters: five, Lost: []NodeID{"a", "b", "c"}},
		"a, which is not named as lost":             {Voters: five, Lost: []NodeID{"b", "c", "d"}, Retire: true},
		"no voter would be left":                    {Voters: five, Lost: five, Retire: true},
		"not needed: a, b, c are 3 of 5 voters, an": {Voters: five, Lost: []NodeID{"d", "e"}},
		`belongs to node "a" of cluster "bees", no`: {Node: "b", Voters: five, Lost: []NodeID{"c", "d", "e"}},
		`this, is "bees", not "wasps"`:              {Cluster: "wasps", Voters: five, Lost: []NodeID{"c", "d", "e"}},
		`this, is "bees", not ""`:                   {Voters: five, Lost: []NodeID{"c", "d", "e"}},
	} {
		t.Run(want, func(t *testing.T) {
			dir := ranOnce(t)
			err := DeclareLost(dir, e)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, dir)
			found, err := Emergencies(dir)
			require.NoError(t, err)
			require.Empty(t, found)
		})
	}
}

func TestEmergencyOnAnEvenNumberNeedsHalfToBeLost(t *testing.T) {
	four := five[:4]
	dir := ranOnce(t)
	_, err := CheckLost(dir, Emergency{Voters: four, Lost: []NodeID{"d"}})
	require.ErrorContains(t, err, "not needed: a, b, c are 3 of 4 voters, and 3 elect")
	outcome, err := CheckLost(dir, Emergency{Voters: four, Lost: []NodeID{"d", "c"}})
	require.NoError(t, err)
	require.Equal(t, EmergencyOutcome{Cluster: "bees", Node: "a", Before: four, Voters: []NodeID{"a", "b"}, Quorum: 2}, outcome)
}

func TestEmergencyNeedsAStoppedNodeThatHasRun(t *testing.T) {
	e := Emergency{Cluster: "bees", Voters: five, Lost: []NodeID{"c", "d", "e"}}
	require.ErrorContains(t, DeclareLost(filepath.Join(t.TempDir(), "x"), e), "no data directory of a node that has run")
	dir := t.TempDir()
	s, err := store.Open(dir, store.Owner{Cluster: "bees", Node: "a"})
	require.NoError(t, err)
	require.ErrorIs(t, DeclareLost(dir, e), store.ErrLocked)
	require.ErrorContains(t, Readmit(dir, "bees", "c"), "stop the node first")
	require.NoError(t, s.Close())
	require.NoError(t, DeclareLost(dir, e))
}

func TestSecondEmergencyCountsFromTheFirst(t *testing.T) {
	dir, seven := ranOnce(t), append(five[:5:5], "f", "g")
	e := Emergency{Cluster: "bees", Voters: seven, Lost: []NodeID{"g", "f", "e", "d"}, Reason: "fire"}
	require.NoError(t, DeclareLost(dir, e))
	require.ErrorContains(t, DeclareLost(dir, e), "g, f, e, d: declared lost here already")
	e.Lost, e.Reason = []NodeID{"b"}, "more fire"
	require.ErrorContains(t, DeclareLost(dir, e), "not needed: a, c are 2 of 3 voters")
	e.Lost = []NodeID{"b", "c"}
	require.NoError(t, DeclareLost(dir, e))

	found, err := Emergencies(dir)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "fire", found[0].Reason)
	require.Equal(t, seven, found[0].Voters)
	require.Equal(t, []NodeID{"a", "b", "c"}, found[1].Voters, "who could vote by then")
	require.Equal(t, []NodeID{"b", "c"}, found[1].Missing())
	require.WithinDuration(t, time.Now(), found[1].Time, time.Minute)
}

func TestVotersAreReadmittedOneAtATime(t *testing.T) {
	dir := ranOnce(t)
	require.NoError(t, DeclareLost(dir, Emergency{Cluster: "bees", Voters: five, Lost: []NodeID{"c", "d", "e"}}))
	require.ErrorContains(t, Readmit(dir, "wasps", "c"), `"bees", not "wasps"`)
	require.ErrorContains(t, Readmit(dir, "bees", "b"), "not recorded as lost")
	require.NoError(t, Readmit(dir, "bees", "c"))
	require.ErrorContains(t, Readmit(dir, "bees", "d"), "node a has not run since c was readmitted")
	boot(t, dir)
	require.NoError(t, Readmit(dir, "bees", "d"))

	found, err := Emergencies(dir)
	require.NoError(t, err)
	require.Equal(t, []NodeID{"c", "d", "e"}, found[0].Lost, "what was lost stays on record")
	require.Equal(t, []NodeID{"e"}, found[0].Missing())
	require.Equal(t, NodeID("d"), found[0].Readmitted[1].Node)
	require.WithinDuration(t, time.Now(), found[0].Readmitted[1].Time, time.Minute)
}

package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

var (
	noon  = time.Date(2025, 3, 9, 12, 0, 0, 0, time.UTC)
	flood = Emergency{Time: noon, Voters: []elector.NodeID{"alice", "bob", "carol"},
		Lost: []elector.NodeID{"bob", "carol"}, Reason: "flood"}
)

// declared is the directory of a stopped node that was in term 7 of group "a" before the flood.
func declared(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"a": 7, "b": 3}.terms()))
	require.NoError(t, s.Close())
	s = existing(t, dir)
	require.NoError(t, s.Declare(flood))
	require.NoError(t, s.Close())
	return dir
}

func existing(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenExisting(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestEmergencyIsThereEverAfter(t *testing.T) {
	dir := declared(t)
	want := flood
	want.Floor = 7 + FloorStep
	for boot := uint64(2); boot < 4; boot++ {
		s := opened(t, dir)
		require.Equal(t, []Emergency{want}, s.Emergencies())
		require.Equal(t, boot, s.Boot(), "to declare is no boot")
		require.NoError(t, s.SavePeers([]string{time.Duration(boot).String()}),
			"what else is written keeps it")
		require.NoError(t, s.Close())
	}
}

func TestEmergencyLiftsTheTermsOfAllGroups(t *testing.T) {
	dir := declared(t)
	floor := lsn.Term(7 + FloorStep)
	s := opened(t, dir)
	requireGroup(t, s, "b", floor)
	requireGroup(t, s, "never opened before", floor)
	require.ErrorContains(t, s.Persist(exact{"a": 8}.terms()),
		"term 8 is below the durable term 1000000007")
	require.NoError(t, s.Persist(exact{"a": floor + 2}.terms()))
	requireGroup(t, s, "a", floor+2)
	require.NoError(t, s.Close())

	s = existing(t, dir)
	require.NoError(t, s.Declare(Emergency{Time: noon, Lost: []elector.NodeID{"dave"}}))
	requireGroup(t, s, "a", floor+2+FloorStep)
	require.Equal(t, Owner{"bees", "alice"}, s.Owner())
}

func TestReadmittedNodeIsMissedNoMore(t *testing.T) {
	dir := declared(t)
	s := existing(t, dir)
	require.NoError(t, s.Readmit("bob", noon.Add(time.Hour)))
	require.ErrorContains(t, s.Readmit("bob", noon),
		`readmit "bob" in `+dir+`: it is not recorded as lost`)
	require.ErrorContains(t, s.Readmit("zoe", noon), "not recorded as lost")
	require.NoError(t, s.Close())

	e := opened(t, dir).Emergencies()[0]
	require.Equal(t, []Readmission{{"bob", noon.Add(time.Hour), 1}}, e.Readmitted)
	require.False(t, e.MissesNode("bob"))
	require.True(t, e.MissesNode("carol"))
	require.False(t, e.MissesNode("alice"))
}

// An older program may open a directory unless it would drop something that matters.
func TestOnlyAnEmergencyOrARecordChangesTheFormat(t *testing.T) {
	dir := t.TempDir()
	format := func() int {
		db, err := bolt.Open(filepath.Join(dir, stateFile), 0o600, &bolt.Options{ReadOnly: true})
		require.NoError(t, err)
		defer db.Close()
		s, err := (&file{db: db}).read()
		require.NoError(t, err)
		return s.Format
	}
	require.NoError(t, opened(t, dir).Close())
	require.Equal(t, formatPlain, format())
	require.Empty(t, existing(t, dir).Emergencies(), "a directory of before opens")
	require.NoFileExists(t, filepath.Join(dir, journalFile))
	dir = declared(t)
	require.Equal(t, formatEmergencies, format())
	s := opened(t, dir)
	require.NoError(t, s.Persist(map[string]Durable{"new": recorded(FloorStep*2, 1, nil)}))
	require.NoError(t, s.Close())
	require.Equal(t, formatRecords, format())
}

func TestBadEmergencyIsNotWritten(t *testing.T) {
	s := opened(t, t.TempDir())
	require.ErrorContains(t, s.Declare(Emergency{Time: noon}), "must name the voters that are lost")
	require.NoError(t, s.Persist(exact{"a": lsn.MaxTerm}.terms()))
	require.ErrorContains(t, s.Declare(flood), "above the highest valid term")
	require.Empty(t, s.Emergencies())
}

func TestOpenExistingMakesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "nowhere")} {
		_, err := OpenExisting(path)
		require.ErrorContains(t, err, "open data directory "+path+": there is no state.db in it")
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, opened(t, dir).Close())
	require.NoError(t, os.Remove(filepath.Join(dir, stateFile)))
	_, err = OpenExisting(dir)
	require.ErrorIs(t, err, ErrCorrupt, "a state that is gone is no fresh start")
}

func TestOpenExistingTakesTheDirectoryAlone(t *testing.T) {
	dir := t.TempDir()
	running := opened(t, dir)
	_, err := OpenExisting(dir)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, running.Close())
	mending := existing(t, dir)
	_, err = Open(dir, alice)
	require.ErrorIs(t, err, ErrLocked)
	require.False(t, mending.file.db.NoSync, "what it writes is synced")
	require.False(t, mending.file.db.NoGrowSync)
}

// What is lost are directories. A name without one is lost until it is readmitted.
func TestWhatIsLostForRecords(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(map[string]Durable{"a": recorded(2, 1, nil)}))
	old := elector.Voter{Node: "carol", Identity: elector.Identity{9}}
	require.NoError(t, s.SaveIdentities("carol", []uuid.UUID{uuid.UUID(old.Identity)}))
	require.NoError(t, s.Declare(Emergency{Time: flood.Time, Voters: flood.Voters,
		Lost: []elector.NodeID{"carol", "dave"}}))
	want := []elector.Voter{old, {Node: "carol", Identity: elector.Identity{3}},
		{Node: "dave", Identity: elector.Identity{4}}, {Node: "dave"}}
	require.ElementsMatch(t, append(want, elector.Voter{Node: "carol"}), s.Lost())
	require.NoError(t, s.Readmit("carol", flood.Time))
	require.NoError(t, s.Close())
	require.ElementsMatch(t, want, existing(t, dir).Lost())
}

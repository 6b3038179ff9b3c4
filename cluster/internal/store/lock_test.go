package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

func TestDirectoryIsForOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	_, err := Open(dir, alice)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, fmt.Sprintf("%s (pid %d)", dir, os.Getpid()))
	require.NoError(t, s.Close())
	require.Equal(t, uint64(2), opened(t, dir).Boot(), "the refused attempt was no boot")
}

func TestBoltLockHoldsWhenTheLockFileWasDeleted(t *testing.T) {
	dir := t.TempDir()
	opened(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, lockFile)))
	_, err := Open(dir, alice)
	require.ErrorIs(t, err, ErrLocked)
	require.NotErrorIs(t, err, ErrCorrupt)
}

func TestDirectoryIsForOneNodeOfOneCluster(t *testing.T) {
	wasp := Owner{Cluster: "wasps", Node: alice.Node}
	refused := func(dir string, other Owner) {
		for _, err := range []error{Check(dir, other), errorOf(Open(dir, other))} {
			require.ErrorIs(t, err, ErrOwner)
			require.ErrorContains(t, err, fmt.Sprintf(`%s belongs to node "alice" of cluster "bees", `+
				`not to node %q of cluster %q: every node needs one of its own`, dir, other.Node,
				other.Cluster))
		}
	}
	dir := t.TempDir()
	require.NoError(t, opened(t, dir).Close())
	refused(dir, Owner{Cluster: "bees", Node: "bob"})
	s := opened(t, dir)
	require.Equal(t, uint64(2), s.Boot(), "a stranger's attempt was no boot")
	require.NoError(t, s.Persist(exact{"a": 1}.terms()))
	require.NoError(t, s.Close())
	refused(dir, wasp)

	s = opened(t, dir)
	s.Forget("a")
	require.NoError(t, s.Close())
	refused(dir, wasp)

	dir = t.TempDir()
	s = opened(t, dir)
	require.NoError(t, s.Declare(Emergency{Time: time.Now(), Lost: []elector.NodeID{"bob"}}))
	require.NoError(t, s.Close())
	refused(dir, wasp)
}

func errorOf(_ *Store, err error) error { return err }

// TestAWrongNameOfTheClusterIsCorrected: no term is in the directory, so no vote was given.
func TestAWrongNameOfTheClusterIsCorrected(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(dir, Owner{Cluster: "beees", Node: alice.Node})
	require.NoError(t, err)
	require.NoError(t, first.Persist(exact{"a": 0}.terms()))
	require.NoError(t, first.Close())
	require.NoError(t, Check(dir, alice))

	s := opened(t, dir)
	require.Equal(t, alice, s.Owner())
	require.Equal(t, first.Identity(), s.Identity())
	require.Equal(t, uint64(2), s.Boot(), "who met the first process knows this one as later")
	text, err := os.ReadFile(filepath.Join(dir, markerFile))
	require.NoError(t, err)
	require.Contains(t, string(text), `node "alice" of cluster "bees"`)
	require.NoError(t, s.Persist(exact{"a": 1}.terms()))
	require.NoError(t, s.Close())
	_, err = Open(dir, first.Owner())
	require.ErrorIs(t, err, ErrOwner, "there is no way back")
}

func TestOwnerNeedsNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	_, err := Open(dir, Owner{Node: "a\xff"})
	require.ErrorContains(t, err, `name of a cluster must be UTF-8 and not empty, not ""`)
	require.ErrorContains(t, err, `name of a node must be UTF-8 and not empty, not "a\xff"`)
	require.NoDirExists(t, dir)
}

func TestOpenSaysWhereItCannotWork(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for _, dir := range []string{plain, filepath.Join(plain, "below")} {
		_, err := Open(dir, alice)
		require.ErrorContains(t, err, plain)
	}
}

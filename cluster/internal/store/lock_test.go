package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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
	dir := t.TempDir()
	require.NoError(t, opened(t, dir).Close())
	for other, advice := range map[Owner]string{
		{Cluster: "bees", Node: "bob"}:    "every node needs one of its own",
		{Cluster: "wasps", Node: "alice"}: `if the node never ran in cluster "bees" as it should`,
	} {
		_, err := Open(dir, other)
		require.ErrorContains(t, err, advice)
		require.ErrorContains(t, err, fmt.Sprintf(
			`%s belongs to node "alice" of cluster "bees", not to node %q of cluster %q`, dir, other.Node,
			other.Cluster))
	}
	require.Equal(t, uint64(2), opened(t, dir).Boot(), "a stranger's attempt was no boot")
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

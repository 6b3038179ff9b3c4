package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/lsn"
)

// breakDisk makes every later write to a file of the store fail.
func breakDisk(t *testing.T, f *os.File) {
	t.Helper()
	readOnly, err := os.Open(f.Name())
	require.NoError(t, err)
	defer readOnly.Close()
	require.NoError(t, unix.Dup3(int(readOnly.Fd()), int(f.Fd()), unix.O_CLOEXEC))
}

func TestFirstFailedWriteToTheJournalIsFinal(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	want := map[string]Durable{"a": recorded(5, 1, []byte("value"))}
	require.NoError(t, s.Persist(want))
	breakDisk(t, s.journal.file)
	err := s.Persist(map[string]Durable{"a": recorded(6, 1, nil)})
	require.ErrorIs(t, err, ErrNotDurable)
	require.ErrorContains(t, err, filepath.Join(dir, journalFile))
	require.Equal(t, brief(want), brief(contents(t, s, want)))
	require.ErrorIs(t, s.Persist(want), ErrNotDurable)
	require.ErrorIs(t, s.SavePause(nil), ErrNotDurable, "nor the state file")
	require.NoError(t, s.Close())
	require.Equal(t, brief(want), brief(contents(t, opened(t, dir), want)))
}

func TestFirstFailedWriteIsFinal(t *testing.T) {
	for name, write := range writes {
		if name == "known" {
			continue // it is not written
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := opened(t, dir)
			require.NoError(t, s.Persist(exact{"a": 5}.terms()))
			breakDisk(t, s.file.raw)
			err := write(s)
			require.ErrorIs(t, err, ErrNotDurable)
			require.ErrorContains(t, err, filepath.Join(dir, stateFile))
			requireRefusal(t, s)
			require.NoError(t, s.Close())
			requireGroup(t, opened(t, dir), "a", 5)
		})
	}
}

func TestFullDiskStopsTheNodeAndLosesNothing(t *testing.T) {
	dir := smallDisk(t)
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
	require.NoError(t, fillDisk(dir))
	// More groups than fit into the pages that the file has.
	many := map[string]lsn.Term{"a": 6}
	for i := range 2_000 {
		many[strings.Repeat("g", i+1)] = 6
	}
	err := s.Persist(exact(many).terms())
	require.ErrorIs(t, err, ErrNotDurable)
	require.ErrorContains(t, err, "the disk is full: free ")
	require.ErrorContains(t, err, " MiB in the file system of "+dir+
		" and start the node again; until then it does not vote")
	requireRefusal(t, s)
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "filler")))
	requireGroup(t, opened(t, dir), "a", 5)
}

// The addresses of peers are a convenience. If the disk is full for a moment when they are written,
// the node must keep its vote.
func TestPeersOnAFullDiskHarmNothingAndAreWrittenLater(t *testing.T) {
	dir := smallDisk(t)
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
	require.NoError(t, s.SavePeers([]string{"one"}))
	require.NoError(t, fillDisk(dir))
	long := []string{"one", strings.Repeat("two", 3*pageSize)}
	require.ErrorIs(t, s.SavePeers(long), unix.ENOSPC)
	require.NoError(t, os.Remove(filepath.Join(dir, "filler")))
	require.NoError(t, s.SavePeers(long))
	require.NoError(t, s.Persist(exact{"a": 6}.terms()))
	require.NoError(t, s.Close())
	s = opened(t, dir)
	require.Equal(t, long, s.Peers())
	requireGroup(t, s, "a", 6)
}

// A vote is written to pages that earlier votes used, so it needs no room on the disk.
func TestVotesNeedNoRoom(t *testing.T) {
	dir := smallDisk(t)
	s := opened(t, dir)
	require.NoError(t, fillDisk(dir))
	for term := range lsn.Term(50) {
		require.NoError(t, s.Persist(exact{"default": term + 1}.terms()), "term %d", term+1)
	}
	require.NoError(t, s.Close())
	requireGroup(t, opened(t, dir), "default", 50)
}

func TestFirstBootOnAFullDiskCanBeRepeated(t *testing.T) {
	dir := smallDisk(t)
	require.NoError(t, fillDisk(dir))
	_, err := Open(dir, alice)
	require.ErrorContains(t, err, "the disk is full: free 2 MiB in the file system of "+dir)
	require.Equal(t, 1, strings.Count(err.Error(), "free 2 MiB"), err)
	require.NoError(t, os.Remove(filepath.Join(dir, "filler")))
	require.Equal(t, uint64(1), opened(t, dir).Boot())
}

// A larger state needs more room: it is written beside the old one.
func TestALargeStateNeedsMoreRoom(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, stateFile), make([]byte, 5<<20), 0o600))
	require.ErrorContains(t, withRoom(dir, unix.ENOSPC), "free 12 MiB")
}

// fillDisk leaves no free block on the disk of dir.
func fillDisk(dir string) error {
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		return err
	}
	for block := bytes.Repeat([]byte{1}, pageSize); err == nil; {
		_, err = f.Write(block)
	}
	if closed := f.Close(); !errors.Is(err, unix.ENOSPC) {
		return errors.Join(err, closed)
	}
	return nil
}

// smallDisk mounts a file system of 128 KiB for the test.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// A file is lost if its name is lost in a crash.
func TestNamesThatCannotBeSyncedAreAnError(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	require.ErrorIs(t, (&Store{dir: gone}).syncNames(), ErrNotDurable)
	require.NoError(t, (&Store{dir: filepath.Dir(gone)}).syncNames())
}

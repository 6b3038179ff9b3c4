package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

// requireRefusal demands that s writes no more, not even what is on disk already.
func requireRefusal(t *testing.T, s *Store) {
	t.Helper()
	require.ErrorIs(t, s.Persist(exact{"a": 5}.terms()), ErrNotDurable)
	require.ErrorIs(t, s.Declare(flood), ErrNotDurable)
	requireGroup(t, s, "a", 5)
}

func TestInterruptedFirstBootStartsOver(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, newFile), []byte("half a"), 0o600))
	require.Equal(t, uint64(1), opened(t, dir).Boot())
	require.NoFileExists(t, filepath.Join(dir, newFile))
}

func TestMarkerIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	identity := s.Identity().String()
	require.NoError(t, s.Close())
	marker := filepath.Join(dir, markerFile)
	require.NoError(t, os.Remove(marker), "as if the first boot had been cut short before it")
	opened(t, dir)
	text, err := os.ReadFile(marker)
	require.NoError(t, err)
	require.Contains(t, string(text), `node "alice" of cluster "bees", identity `+identity)
}

func TestClosedStoreReadsButWritesNothing(t *testing.T) {
	s := opened(t, t.TempDir())
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	requireRefusal(t, s)
}

// The kernel writes on to a file that nobody will find any more.
func TestADirectoryThatIsNotThereAnyMoreIsFinal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it does not let go of open files")
	}
	for name, lose := range map[string]func(dir string) error{
		"was deleted": os.RemoveAll,
		"was moved":   func(dir string) error { return os.Rename(dir, dir+".old") },
		"was replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.CopyFS(dir, os.DirFS(dir+".old")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s := opened(t, dir)
			require.NoError(t, s.Persist(exact{"a": 5}.terms()))
			require.NoError(t, s.Check())
			require.NoError(t, lose(dir))
			err := s.Persist(exact{"a": 6}.terms())
			require.ErrorIs(t, err, ErrNotDurable)
			require.ErrorContains(t, err, filepath.Join(dir, stateFile)+": the file was ")
			require.ErrorIs(t, s.Check(), ErrNotDurable)
			requireRefusal(t, s)
		})
	}
}

func TestADirectoryIsFoundFromAnyWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	s := opened(t, "data")
	t.Chdir(t.TempDir())
	require.NoError(t, s.Check())
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
}

func TestBadInputIsRefusedAndHarmless(t *testing.T) {
	s := opened(t, t.TempDir())
	require.ErrorContains(t, s.Persist(exact{"a": lsn.MaxTerm + 1}.terms()),
		`group "a": term 9223372036854775808 is above`)
	require.ErrorContains(t, s.Persist(exact{"": 1}.terms()), "name of a group")
	require.ErrorContains(t, s.SavePeers([]string{"\xff"}), "name of a peer")
	_, err := s.Group("\xff")
	require.ErrorContains(t, err, "name of a group")
	requireGroup(t, s, "a", 0)
}

func TestPeersAreCopied(t *testing.T) {
	s := opened(t, t.TempDir())
	given := []string{"one"}
	require.NoError(t, s.SavePeers(given))
	given[0] = "changed"
	s.Peers()[0] = "changed too"
	require.Equal(t, []string{"one"}, s.Peers())
}

func TestUnchangedStateIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
	require.NoError(t, s.SavePeers([]string{"one"}))
	before, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
	require.NoError(t, s.SavePeers([]string{"one"}))
	after, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	var writers sync.WaitGroup
	for _, group := range []string{"a", "b", "c"} {
		writers.Go(func() {
			for term := range lsn.Term(5) {
				if err := s.Persist(exact{group: term + 1}.terms()); err != nil {
					t.Error(err)
				}
				s.Peers()
			}
		})
	}
	writers.Wait()
	require.NoError(t, s.Close())
	s = opened(t, dir)
	for _, group := range []string{"a", "b", "c"} {
		requireGroup(t, s, group, 5)
	}
}

func BenchmarkPersist(b *testing.B) {
	for name, groups := range map[string]int{"groups=1": 1, "groups=100": 100, "groups=3000": 3000} {
		b.Run(name, func(b *testing.B) {
			s := opened(b, b.TempDir())
			terms := make(map[string]lsn.Term)
			for term := lsn.Term(1); b.Loop(); term++ {
				for i := range groups {
					terms[strconv.Itoa(i)] = term
				}
				if err := s.Persist(exact(terms).terms()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

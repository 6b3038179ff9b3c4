package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// writes are all methods whose result must be on disk when they return.
var writes = map[string]func(*Store) error{
	"terms":      func(s *Store) error { return s.Persist(exact{"a": 6}.terms()) },
	"known":      func(s *Store) error { return s.Persist(exact{"a": 5}.terms()) },
	"emergency":  func(s *Store) error { return s.Declare(flood) },
	"pause":      func(s *Store) error { return s.SavePause(&Pause{}) },
	"identities": func(s *Store) error { return s.SaveIdentities("b", []uuid.UUID{{1}}) },
}

// requireRefusal demands that s, with term 5 of group "a", writes nothing more, not even what is on
// disk already, and returns nothing that is not on disk.
func requireRefusal(t *testing.T, s *Store) {
	t.Helper()
	for name, write := range writes {
		require.ErrorIs(t, write(s), ErrNotDurable, name)
	}
	requireGroup(t, s, "a", 5)
	require.Empty(t, s.Emergencies())
	require.Nil(t, s.Pause())
	require.Empty(t, s.Identities())
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

// The kernel still writes to a file that no start will find.
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
	require.NoError(t, s.Persist(exact{"a": 7}.terms()))
	for _, c := range []struct {
		group string
		terms elector.Terms
		want  string
	}{
		{"a", elector.Terms{Entered: 8, Reserved: lsn.MaxTerm + 1}, "term 9223372036854775808 is above"},
		{"a", elector.Terms{Entered: 6, Reserved: 90}, `group "a": term 6 is below the durable term 7`},
		{"a", elector.Terms{Entered: 8, Reserved: 7}, "term 8 is above the highest reserved term 7"},
		{"", elector.Terms{Entered: 8, Reserved: 8}, "name of a group"},
	} {
		err := s.Persist(kept(map[string]elector.Terms{c.group: c.terms, "0": {Entered: 1, Reserved: 1}}))
		require.ErrorContains(t, err, c.want)
		require.NotErrorIs(t, err, ErrNotDurable)
	}
	require.ErrorContains(t, s.SavePeers([]string{"\xff"}), "name of a peer")
	_, err := s.Group("\xff")
	require.ErrorContains(t, err, "name of a group")
	requireGroup(t, s, "a", 7)
	requireGroup(t, s, "0", 0)
	require.NoError(t, s.Persist(exact{"a": 8}.terms()), "it is no failure of the disk")
}

func TestPeersAreCopied(t *testing.T) {
	s := opened(t, t.TempDir())
	given := []string{"one"}
	require.NoError(t, s.SavePeers(given))
	given[0] = "changed"
	s.Peers()[0] = "changed too"
	require.Equal(t, []string{"one"}, s.Peers())
}

func TestWhatChangesNothingIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
	before, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
	require.NoError(t, s.SavePeers([]string{"one"}))
	requireGroup(t, s, "opened", 0)
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

func BenchmarkPersistRecords(b *testing.B) {
	for _, groups := range []int{1, 100} {
		b.Run(fmt.Sprint("groups=", groups), func(b *testing.B) {
			s, news := opened(b, b.TempDir()), map[string]Durable{}
			for counter := uint64(1); b.Loop(); counter++ {
				for i := range groups {
					value := binary.BigEndian.AppendUint64(make([]byte, 1016), counter)
					news[strconv.Itoa(i)] = recorded(1, counter, value)
				}
				if err := s.Persist(news); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

var alice = Owner{Cluster: "bees", Node: "alice"}

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// opened opens dir for alice until the test ends.
func opened(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, alice)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStateOutlivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	s := opened(t, dir)
	require.Equal(t, uint64(1), s.Boot())
	require.NoError(t, s.Persist(exact{"a": 7, "b": lsn.MaxTerm}.terms()))
	require.NoError(t, s.SavePeers([]string{"127.0.0.1:1", "[::1]:2"}))
	identity := s.Identity()
	require.NoError(t, s.Close())

	s = opened(t, dir)
	require.Equal(t, identity, s.Identity())
	require.Equal(t, uint64(2), s.Boot())
	require.Equal(t, []string{"127.0.0.1:1", "[::1]:2"}, s.Peers())
	requireGroup(t, s, "a", 7)
	requireGroup(t, s, "b", lsn.MaxTerm)
}

func requireGroup(t *testing.T, s *Store, name string, want lsn.Term) {
	t.Helper()
	got, err := s.Group(name)
	require.NoError(t, err)
	require.Equal(t, Durable{Terms: elector.Terms{Entered: want, Reserved: want}}, got)
}

// requireForgotten demands that the group starts as after a crash, at most in the term last.
func requireForgotten(t *testing.T, s *Store, name string, last lsn.Term) {
	t.Helper()
	got, err := s.Group(name)
	require.NoError(t, err)
	require.Equal(t, Durable{Terms: elector.Terms{Reserved: last}}, got)
}

// exact are terms without further reserved ones.
type exact map[string]lsn.Term

func (e exact) terms() map[string]Durable {
	all := map[string]elector.Terms{}
	for group, term := range e {
		all[group] = elector.Terms{Entered: term, Reserved: term}
	}
	return kept(all)
}

// kept returns terms as what is durable of groups without a record.
func kept(terms map[string]elector.Terms) map[string]Durable {
	all := map[string]Durable{}
	for group, t := range terms {
		all[group] = Durable{Terms: t}
	}
	return all
}

// A program of version 0.1 reads the highest reserved term as the term of the group, and so votes
// only above it. It leaves an exact term.
func TestTheProgramBeforeStartsAboveWhatIsReserved(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.Persist(kept(map[string]elector.Terms{"a": {Entered: 5, Reserved: 69}})))
	var before struct {
		Format int
		Groups map[string]uint64
	}
	require.NoError(t, json.Unmarshal(record(t, s)[len("crc32sum "):], &before))
	require.Equal(t, map[string]uint64{"a": 69}, before.Groups)
	require.Equal(t, formatPlain, before.Format)

	left := s.state.Load().clone()
	left.Entered = nil // it does not know that field
	require.NoError(t, s.file.write(&left, nil))
	require.NoError(t, s.Close())
	requireGroup(t, opened(t, dir), "a", 69)
}

func TestADirectoryThatEverybodyMayChangeIsRefused(t *testing.T) {
	for _, name := range []string{".", stateFile} {
		dir := t.TempDir()
		require.NoError(t, opened(t, dir).Close())
		path := filepath.Join(dir, name)
		require.NoError(t, os.Chmod(path, 0o702))
		for _, err := range []error{Check(dir, alice), errorOf(Open(dir, alice))} {
			require.ErrorIs(t, err, ErrNotDurable)
			require.ErrorContains(t, err, "run 'chmod o-w "+path+"'")
		}
		require.NoError(t, os.Chmod(path, 0o770), "the group may")
		opened(t, dir)
	}
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	opened(t, dir)
	for name, mode := range map[string]os.FileMode{"": 0o700, stateFile: 0o600, lockFile: 0o600,
		markerFile: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
}

// unsynced is a Disk that writes, without fsync.
func unsynced(write func() error) error { return write() }

package store

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

var release = flag.String("release", "", "add a data directory of this build, under VERSION[-emergency]")

const released = "testdata/released"

// TestDataDirectoriesOfReleases opens a data directory of every released version. Its content is
// the same as then, and a node can run on it.
func TestDataDirectoriesOfReleases(t *testing.T) {
	if *release != "" {
		recordDirectory(t, filepath.Join(released, *release))
	}
	descriptions, err := filepath.Glob(released + "/*/want.txt")
	require.NoError(t, err)
	require.NotEmpty(t, descriptions)
	for _, description := range descriptions {
		from := filepath.Dir(description)
		t.Run(filepath.Base(from), func(t *testing.T) {
			want, err := os.ReadFile(description)
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
			s, err := OpenExisting(dir)
			require.NoError(t, err)
			require.Equal(t, string(want), described(t, s))
			owner, boot := s.Owner(), s.Boot()
			require.NoError(t, s.Close())

			s, err = Open(dir, owner)
			require.NoError(t, err)
			require.Equal(t, boot+1, s.Boot())
			has, err := s.Group("default")
			require.NoError(t, err)
			next := elector.Terms{Entered: has.Terms.Reserved + 1, Reserved: has.Terms.Reserved + 16}
			require.NoError(t, s.Persist(kept(map[string]elector.Terms{"default": next})))
			require.NoError(t, s.Close())
		})
	}
}

// described returns the content of a directory as text.
func described(t *testing.T, s *Store) string {
	text := fmt.Sprintf("%+v identity %s boot %d\n", s.Owner(), s.Identity(), s.Boot())
	for _, group := range []string{"default", "orders", "unknown"} {
		has, err := s.Group(group)
		require.NoError(t, err)
		text += fmt.Sprintf("%s %+v\n", group, has.Terms)
	}
	s.loadPeers()
	return text + fmt.Sprintf("peers %v\nemergencies %+v\npause %+v\n",
		s.Peers(), s.Emergencies(), s.Pause().Left(time.Unix(1_799_999_990, 0)))
}

// recordDirectory makes a directory with everything that one can hold.
func recordDirectory(t *testing.T, dir string) {
	owner := Owner{Cluster: "shop", Node: "n1"}
	s, err := Open(dir, owner)
	require.NoError(t, err)
	require.NoError(t, s.Persist(kept(map[string]elector.Terms{
		"default": {Entered: 7, Reserved: 23}, "orders": {Entered: 3, Reserved: 3},
		"invoices": {Entered: 5, Reserved: 5},
	})))
	s.Forget("invoices")
	require.NoError(t, s.SavePeers([]string{"127.0.0.1:7400", "127.0.0.1:7403"}))
	require.NoError(t, s.SavePause(&Pause{
		Until: time.Unix(1_800_000_000, 0).UTC(), For: time.Minute, Led: []string{"default"},
	}))
	if strings.HasSuffix(dir, "-emergency") {
		require.NoError(t, s.Declare(Emergency{
			Time: time.Unix(1_750_000_000, 0), Reason: "fire",
			Voters: []elector.NodeID{"n1", "n2", "n3"}, Lost: []elector.NodeID{"n2"},
		}))
	}
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
	s, err = OpenExisting(dir)
	require.NoError(t, err)
	text := described(t, s)
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "want.txt"), []byte(text), 0o600))
}

package store

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/lsn"
)

// model is what a store should hold.
type model struct {
	boot   uint64
	groups map[string]lsn.Term
	voted  map[string]lsn.Term // the same, of groups that were forgotten too
	peers  []string
}

// TestStoreDoesWhatItsModelDoes runs random calls and restarts against a map.
func TestStoreDoesWhatItsModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		s, want := reopen(t, nil, dir), model{boot: 1, groups: map[string]lsn.Term{},
			voted: map[string]lsn.Term{}}
		defer func() { require.NoError(t, s.Close()) }()
		group := rapid.SampledFrom([]string{"a", "b", "group with \"quotes\"", "\u00e9"})
		t.Repeat(map[string]func(*rapid.T){
			"reopen":  func(t *rapid.T) { s = reopen(t, s, dir); want.boot++ },
			"group":   func(t *rapid.T) { want.group(t, s, group.Draw(t, "group")) },
			"forget":  func(t *rapid.T) { want.forget(s, group.Draw(t, "group")) },
			"persist": func(t *rapid.T) { want.persist(t, s, rapid.MapOf(group, terms()).Draw(t, "terms")) },
			"peers": func(t *rapid.T) {
				want.peers = rapid.SliceOfN(rapid.StringN(1, 9, -1), 0, 3).Draw(t, "peers")
				require.NoError(t, s.SavePeers(want.peers))
			},
			"": func(t *rapid.T) {
				require.Equal(t, want.boot, s.Boot())
				require.True(t, slices.Equal(want.peers, s.Peers()), "%q, not %q", s.Peers(), want.peers)
			},
		})
	})
}

func terms() *rapid.Generator[lsn.Term] {
	return rapid.Map(rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64()),
		func(n uint64) lsn.Term { return lsn.Term(n) })
}

// reopen closes s, if there is one, and opens dir.
func reopen(t *rapid.T, s *Store, dir string) *Store {
	if s != nil {
		require.NoError(t, s.Close())
	}
	s, err := OpenOn(dir, alice, unsynced)
	require.NoError(t, err)
	return s
}

func (m *model) group(t *rapid.T, s *Store, name string) {
	got, err := s.Group(name)
	require.NoError(t, err)
	require.GreaterOrEqual(t, got, m.voted[name], "a vote could be given twice")
	if term, ok := m.groups[name]; ok {
		require.Equal(t, term, got)
		return
	}
	highest := slices.Max(append(slices.Collect(maps.Values(m.voted)), 0))
	require.LessOrEqual(t, got, highest)
}

func (m *model) forget(s *Store, name string) {
	s.Forget(name)
	delete(m.groups, name)
}

func (m *model) persist(t *rapid.T, s *Store, raised map[string]lsn.Term) {
	starts := map[string]lsn.Term{}
	for name := range raised {
		starts[name], _ = s.Group(name)
	}
	err := s.Persist(raised)
	for name, term := range raised {
		if term > lsn.MaxTerm || term < starts[name] {
			require.Error(t, err)
			return
		}
	}
	require.NoError(t, err)
	for name, term := range raised {
		if term > 0 {
			m.groups[name], m.voted[name] = term, term
		}
	}
}

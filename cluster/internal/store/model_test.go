package store

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// model is the expected content of a store.
type model struct {
	boot      uint64
	groups    map[string]elector.Terms
	forgotten lsn.Term // the highest reserved term of the groups that were forgotten
	peers     []string
}

// TestStoreDoesWhatItsModelDoes runs random calls and restarts against a map.
func TestStoreDoesWhatItsModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		s, want := reopen(t, nil, dir), model{boot: 1, groups: map[string]elector.Terms{}}
		defer func() { require.NoError(t, s.Close()) }()
		group := rapid.SampledFrom([]string{"a", "b", "group with \"quotes\"", "\u00e9"})
		t.Repeat(map[string]func(*rapid.T){
			"reopen":  func(t *rapid.T) { s = reopen(t, s, dir); want.boot++ },
			"group":   func(t *rapid.T) { want.group(t, s, group.Draw(t, "group")) },
			"forget":  func(t *rapid.T) { want.forget(s, group.Draw(t, "group")) },
			"persist": func(t *rapid.T) { want.persist(t, s, rapid.MapOf(group, terms()).Draw(t, "terms")) },
			"stop": func(t *rapid.T) { // gives back the terms that were reserved and not used
				name := group.Draw(t, "group")
				entered := want.terms(name).Entered
				want.persist(t, s, map[string]elector.Terms{name: {Entered: entered, Reserved: entered}})
			},
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

func terms() *rapid.Generator[elector.Terms] {
	term := rapid.Map(rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64()),
		func(n uint64) lsn.Term { return lsn.Term(n) })
	return rapid.Custom(func(t *rapid.T) elector.Terms {
		return elector.Terms{Entered: term.Draw(t, "entered"), Reserved: term.Draw(t, "reserved")}
	})
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

// terms returns those at which a group starts.
func (m *model) terms(name string) elector.Terms {
	if t, ok := m.groups[name]; ok {
		return t
	}
	return elector.Terms{Reserved: m.forgotten}
}

func (m *model) group(t *rapid.T, s *Store, name string) {
	got, err := s.Group(name)
	require.NoError(t, err)
	require.Equal(t, Durable{Terms: m.terms(name)}, got)
}

func (m *model) forget(s *Store, name string) {
	s.Forget(name)
	m.forgotten = max(m.forgotten, m.groups[name].Reserved)
	delete(m.groups, name)
}

func (m *model) persist(t *rapid.T, s *Store, terms map[string]elector.Terms) {
	next := maps.Clone(m.groups)
	err := s.Persist(kept(terms))
	for name, to := range terms {
		legal := to.Reserved <= lsn.MaxTerm && to.Entered <= to.Reserved &&
			to.Entered >= m.terms(name).Entered
		if !legal {
			require.Error(t, err)
			return
		}
		if to.Reserved > 0 {
			next[name] = to
		}
	}
	require.NoError(t, err)
	m.groups = next
}

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
	shared    lsn.Term // likewise, with those that reserve terms without an entry
	share     map[string]elector.Terms
	peers     []string
}

// TestStoreDoesWhatItsModelDoes runs random calls and restarts against a map.
func TestStoreDoesWhatItsModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "store")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		s, want := reopen(t, nil, dir), model{
			boot: 1, groups: map[string]elector.Terms{}, share: map[string]elector.Terms{},
		}
		defer func() { require.NoError(t, s.Close()) }()
		group := rapid.SampledFrom([]string{"a", "b", "group with \"quotes\"", "\u00e9"})
		t.Repeat(map[string]func(*rapid.T){
			"crash": func(t *rapid.T) {
				want.starts(t)
				s, want.forgotten = reopen(t, s, dir), want.shared
				clear(want.share)
			},
			"close": func(t *rapid.T) {
				want.starts(t)
				for _, name := range slices.Sorted(maps.Keys(want.share)) {
					want.stop(t, s, name)
				}
				require.NoError(t, s.GiveBack())
				s, want.shared = reopen(t, s, dir), want.forgotten
			},
			"power loss": func(t *rapid.T) { want.survives(t, dir) },
			"group":      func(t *rapid.T) { want.group(t, s, group.Draw(t, "group")) },
			"forget":     func(t *rapid.T) { want.forget(t, s, group.Draw(t, "group")) },
			"persist":    func(t *rapid.T) { want.persist(t, s, rapid.MapOf(group, terms()).Draw(t, "terms")) },
			"stop":       func(t *rapid.T) { want.stop(t, s, group.Draw(t, "group")) },
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

// starts counts a start. The model knows no groups that are forgotten because no start opens them.
func (m *model) starts(t *rapid.T) {
	if m.boot == idleStarts {
		t.Skip()
	}
	m.boot++
}

// survives demands that a node which starts on what is on disk now would not vote in a term that is
// known to be reserved. What was only forgotten may come back.
func (m *model) survives(t *rapid.T, dir string) {
	left, err := os.MkdirTemp("", "store")
	require.NoError(t, err)
	defer os.RemoveAll(left)
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	s := reopen(t, nil, left)
	defer func() { require.NoError(t, s.Close()) }()
	for _, all := range []map[string]elector.Terms{m.groups, m.share} {
		for name, terms := range all {
			got, err := s.Group(name)
			require.NoError(t, err)
			require.GreaterOrEqual(t, got.Terms.Reserved, terms.Reserved, name)
		}
	}
}

// stop gives back the terms that were reserved and not used.
func (m *model) stop(t *rapid.T, s *Store, name string) {
	entered := max(m.terms(name).Entered, m.share[name].Entered)
	m.persist(t, s, map[string]elector.Terms{name: {Entered: entered, Reserved: entered}})
	delete(m.share, name)
}

func (m *model) forget(t *rapid.T, s *Store, name string) {
	if _, shares := m.share[name]; shares {
		m.stop(t, s, name)
	}
	s.Forget(name)
	m.forgotten = max(m.forgotten, m.groups[name].Reserved)
	m.shared = max(m.shared, m.forgotten)
	delete(m.groups, name)
}

func (m *model) persist(t *rapid.T, s *Store, terms map[string]elector.Terms) {
	next, share, shared := maps.Clone(m.groups), maps.Clone(m.share), m.shared
	err := s.Persist(kept(terms))
	for _, name := range slices.Sorted(maps.Keys(terms)) {
		to := terms[name]
		legal := to.Reserved <= lsn.MaxTerm && to.Entered <= to.Reserved &&
			to.Entered >= m.terms(name).Entered
		if !legal {
			require.Error(t, err)
			return
		}
		_, known := s.state.Load().Groups[name]
		switch {
		case err == nil && to.Reserved > 0 && !known:
			require.Less(t, to.Entered, to.Reserved)
			require.LessOrEqual(t, to.Reserved, m.forgotten+sharedTerms)
			share[name], shared = to, max(shared, to.Reserved)
		case to.Reserved > 0:
			next[name] = to
			delete(share, name)
		}
	}
	require.NoError(t, err)
	m.groups, m.share, m.shared = next, share, shared
}

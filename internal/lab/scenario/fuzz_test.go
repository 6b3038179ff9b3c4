package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/scouting"
)

// FuzzParse: no text makes the reader panic, and a scenario that it returns keeps
// what Scenario promises to those who run it.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text, key, to string) {
		if len(text) > 10_000 {
			return // the YAML parser takes time that grows faster than the text
		}
		s, err := Parse("f.yaml", []byte(text), key+"="+to, "seed=1")
		if err != nil {
			requireOneLineEach(t, err)
			return
		}
		if len(s.Timeline) > 1000 {
			return // a repetition: long to check, and no different from a short one
		}
		requireSound(t, s)
		again, err := Parse("f.yaml", []byte(text), key+"="+to, "seed=1")
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}

// seed takes the inputs of all scripts.
func seed(f *testing.F) {
	paths, err := filepath.Glob("testdata/scripts/*.txt")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		script, err := os.ReadFile(path)
		require.NoError(f, err)
		for part := range strings.SplitSeq(string(script), "\n\n") {
			input, _, _ := strings.Cut(part, "\n----\n")
			_, input, _ = strings.Cut(input, "\n")
			f.Add(base+input, "profile", "article")
			f.Add(input, "elector.lease", "900ms")
		}
	}
	whole, err := os.ReadFile("testdata/good/everything.yaml")
	require.NoError(f, err)
	f.Add(string(whole), "duration", "130s")
}

func requireOneLineEach(t *testing.T, err error) {
	t.Helper()
	for line := range strings.SplitSeq(err.Error(), "\n") {
		require.Regexp(t, `^f\.yaml:(\d+:\d+:)? .`, line)
	}
}

func requireSound(t *testing.T, s *Scenario) {
	t.Helper()
	require.NotEmpty(t, s.Name)
	require.Positive(t, s.Duration)
	for _, n := range s.Nodes {
		if len(s.Election.Voters) <= scouting.MaxVoters {
			require.NoError(t, s.Config(n).Validate())
		}
	}
	if s.Begin.Leader != "" {
		requireCandidate(t, s, s.Begin.Leader)
		require.Positive(t, s.Begin.Term)
	}
	before := time.Duration(0)
	for _, step := range s.Timeline {
		require.LessOrEqual(t, before, step.At)
		require.LessOrEqual(t, step.At, s.Duration)
		requireSoundText(t, step.Text)
		requireSoundAction(t, s, step.Action)
		before = step.At
	}
	for _, e := range s.Expect {
		requireSoundText(t, e.Text)
		require.GreaterOrEqual(t, e.From, time.Duration(0))
		require.LessOrEqual(t, e.From, e.To)
		require.LessOrEqual(t, e.To, s.Duration)
		requireSoundWant(t, s, e.Want)
	}
}

func requireSoundText(t *testing.T, text string) {
	t.Helper()
	require.NotEmpty(t, text)
	require.NotContains(t, text, "\n")
}

func requireSoundAction(t *testing.T, s *Scenario, a Action) {
	t.Helper()
	switch a.Do {
	case "cut":
		requirePairs(t, s, a.Cut)
	case "reset":
		requirePairs(t, s, a.Cut)
		requirePairs(t, s, a.Reset)
		require.Len(t, once(a.Cut), len(a.Reset))
	case "heal":
		require.True(t, len(a.Heal) > 0 || len(s.Nodes) == 1)
	case "link":
		requirePairs(t, s, a.Linked)
	case "partition":
		require.ElementsMatch(t, s.linksOf(s.ids()), slices.Concat(a.Cut, a.Heal))
	case "transfer":
		require.True(t, a.To == "" || s.node(a.To) != nil)
	default:
		require.Contains(t, commands, a.Do)
		requireNodes(t, s, a.Nodes)
	}
	require.LessOrEqual(t, a.Rest, longestRest)
	require.True(t, a.Unsynced == "" || a.Do == "crash")
	require.True(t, !a.Wipe || a.Do == "restart")
	require.True(t, a.Rest == 0 || a.Do == "step-down")
}

func requireSoundWant(t *testing.T, s *Scenario, want Want) {
	t.Helper()
	switch r := want.Range; want.Key {
	case "leader":
		requireNodes(t, s, want.Nodes)
		for _, id := range want.Nodes {
			requireCandidate(t, s, id)
			require.NotContains(t, want.Followers, id)
		}
	case "no_leader":
		requireKnown(t, s, want.Nodes...)
	case "leader_within":
		require.Positive(t, want.Within)
	case "max_term":
		require.Positive(t, want.Term)
	default:
		require.Contains(t, wantNames(), want.Key)
		require.True(t, r.Min <= r.Max && (r.Min >= 0 || r.Max >= 0), r)
	}
}

func requirePairs(t *testing.T, s *Scenario, pairs []Pair) {
	t.Helper()
	require.NotEmpty(t, pairs)
	seen := map[Pair]bool{}
	for _, p := range pairs {
		require.NotEqual(t, p.From, p.To)
		require.False(t, seen[p], "%s twice", p)
		seen[p] = true
		requireKnown(t, s, p.From, p.To)
	}
}

func requireNodes(t *testing.T, s *Scenario, ids []NodeID) {
	t.Helper()
	require.NotEmpty(t, ids)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), len(ids), "one is there twice")
	requireKnown(t, s, ids...)
}

func requireKnown(t *testing.T, s *Scenario, ids ...NodeID) {
	t.Helper()
	for _, id := range ids {
		require.NotNil(t, s.node(id), "node %s", id)
	}
}

func requireCandidate(t *testing.T, s *Scenario, id NodeID) {
	t.Helper()
	requireKnown(t, s, id)
	n := s.node(id)
	require.False(t, n.Observer || n.NotCandidate, "%s is no candidate", id)
}

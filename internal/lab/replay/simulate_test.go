package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// load parses a scenario that a test needs.
func load(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	sc, err := scenario.Parse("test.yaml", []byte(text))
	require.NoError(t, err)
	return sc
}

const pingPong = `
name: ping-pong
about: b loses its link to leader a
source: a test
nodes: [a, b, c, d]
begin: {leader: a, term: 10}
duration: 60s
timeline:
  - {at: 10s, cut: [a-b]}
  - {at: 50s, heal: all}
expect:
  - {from: 0s, to: 60s, leader: a, term: 10}
  - {from: 0s, to: 60s, leader_changes: 0}
  - {from: 15s, to: 50s, no_leader: [b]}
  - {at: 59s, leader: a, followers: [b, c, d]}
`

func TestHistoryTellsWhatHappened(t *testing.T) {
	run, err := Simulate(load(t, pingPong), Options{Seed: 1, Arrows: true})
	require.NoError(t, err)
	h := run.History
	require.Empty(t, h.Broken)
	require.Empty(t, h.Problems)
	for _, v := range run.Verdicts {
		require.True(t, v.Held, "%s: %s", v.Text, v.Seen)
	}
	require.Equal(t, []history.Reign{{From: 0, To: time.Minute, Leader: "a"}},
		h.Reigns(0, time.Minute))
	require.Equal(t, history.NodeID(""), h.Lane("b").At(30*time.Second).Leader)
	require.Equal(t, elector.Follower, h.Lane("b").At(30*time.Second).Role)
	require.ElementsMatch(t, []history.Cut{
		{From: "a", To: "b", Start: 10 * time.Second, End: 50 * time.Second},
		{From: "b", To: "a", Start: 10 * time.Second, End: 50 * time.Second},
	}, h.Cuts)
	require.Len(t, h.Marks, 2)
	require.NotEmpty(t, h.Arrows)
	var lost int
	for _, a := range h.Arrows {
		if a.Received == history.Forever {
			lost++
		} else {
			require.GreaterOrEqual(t, a.Received, a.Sent)
		}
	}
	require.NotZero(t, lost, "what went into the cut")
}

// A heartbeat of Raft is as all the others of its term: none may pass for one that was lost.
func TestWhatIsLostStaysLostAmongItsLike(t *testing.T) {
	run, err := Simulate(load(t, partition),
		Options{Seed: 1, Algorithm: raft.WithCheckQuorum, Arrows: true})
	require.NoError(t, err)
	lost := 0
	for _, a := range run.History.Arrows {
		if a.Received == history.Forever {
			lost++
			continue
		}
		require.Less(t, a.Received, a.Sent+100*time.Millisecond, "%+v", a)
	}
	require.NotZero(t, lost)
}

// Raft cannot begin in the term of the file: what is expected of terms counts from its own.
// The step that ends a leadership ends its lease, too: what was led until then counts.
func TestALeaderLeadsUntilItIsStopped(t *testing.T) {
	sc := load(t, strings.Replace(pingPong, "cut: [a-b]", "stop: [a]", 1))
	for _, a := range Algorithms() {
		if a.Leased {
			run, err := Simulate(sc, Options{Seed: 1, Algorithm: a})
			require.NoError(t, err)
			require.Equal(t, history.Reign{From: 0, To: 10 * time.Second, Leader: "a"},
				run.History.Reigns(0, time.Minute)[0], a.Name)
		}
	}
}

func TestTermsOfOthersCountFromTheBeginning(t *testing.T) {
	sc := load(t, pingPong+"  - {max_term: 10}\n")
	run, err := Simulate(sc, Options{Seed: 1, Algorithm: raft.WithCheckQuorum})
	require.NoError(t, err)
	began := run.History.Lane("a").At(0).Term
	require.NotEqual(t, sc.Begin.Term, began)
	for _, v := range []int{0, 4} {
		require.True(t, run.Verdicts[v].Held, "%+v", run.Verdicts[v])
		require.Contains(t, run.Verdicts[v].Text, fmt.Sprintf(" (here term %d)", began))
	}
	run, err = Simulate(sc, Options{Seed: 1, Algorithm: raft.Basic})
	require.NoError(t, err)
	require.False(t, run.Verdicts[4].Held, "its terms rise: %+v", run.Verdicts[4])
	run, err = Simulate(sc, Options{Seed: 1, Algorithm: bully.Bully})
	require.NoError(t, err)
	require.Contains(t, run.Verdicts[0].Text, " (here are no terms)")
	require.Empty(t, run.About, "it is about this elector")
}

// The store of an algorithm has no lane, so it is in no picture, and neither are its ways.
func TestTheWaysToAStoreAreNoCuts(t *testing.T) {
	run, err := Simulate(load(t, partition), Options{Seed: 1, Algorithm: etcdlease.EtcdLease})
	require.NoError(t, err)
	require.Empty(t, run.History.Problems)
	require.NotEmpty(t, run.History.Cuts)
	for _, c := range run.History.Cuts {
		require.NotNil(t, run.History.Lane(c.From), c)
		require.NotNil(t, run.History.Lane(c.To), c)
	}
}

const partition = `
name: partition
about: a is alone
source: a test
nodes: [a, b, c]
duration: 40s
timeline:
  - {at: 10s, partition: [[a], [b, c]]}
  - {at: 30s, heal: all}
expect:
  - {from: 0s, to: 40s, leader: b}
`

// Ours takes 32 voters at most; scenarios and the others take as many as there are.
func TestSixtyFourVoters(t *testing.T) {
	var names []string
	for i := range 64 {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	sc := load(t, "name: many\nnodes: ["+strings.Join(names, ", ")+"]\nduration: 60s\n"+
		"timeline:\n  - {at: 30s, crash: n0}\n")
	for _, a := range Algorithms() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			run, err := Simulate(sc, Options{Seed: 1, Algorithm: a})
			if a.Name == ours.Elector.Name || a.Name == ours.WithoutScouting.Name {
				require.EqualError(t, err, "test.yaml: 64 nodes vote, but must be at most 32 in "+a.Name+
					": let the others be observers, or play another algorithm")
				return
			}
			require.NoError(t, err)
			require.Empty(t, slices.Concat(run.History.Broken, run.History.Problems))
			require.NotEmpty(t, run.History.LeaderAt(29*time.Second), "of 64")
			successor := run.History.LeaderAt(59 * time.Second)
			require.Equal(t, a.Name == bully.UUID.Name, successor == "", "of 63") // it never has one
		})
	}
}

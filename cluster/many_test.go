package cluster_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// journals are the log of each node.
type journals struct {
	mu   sync.Mutex
	text map[cluster.NodeID]*bytes.Buffer
}

// lines are those that have a text, with a count of elections if they have one.
func (j *journals) lines(of cluster.NodeID, text string) (lines []string, elections int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text[of].String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
			count := 0
			if _, at, found := strings.Cut(line, "elections="); found {
				_, _ = fmt.Sscan(at, &count)
			}
			elections += count
		}
	}
	return lines, elections
}

// A node dies that leads thousands: the others say so in few lines, and the history of the default
// election is whole.
func TestManyElectionsLoseTheirLeaderInFewLines(t *testing.T) {
	const count = 1000
	logs := journals{text: map[cluster.NodeID]*bytes.Buffer{}}
	configure := func(cfg *cluster.Config) {
		out := &bytes.Buffer{}
		logs.text[cfg.Node] = out
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: out, Mutex: &logs.mu})
		cfg.Election.NotCandidate = cfg.Node != "a"
	}
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		for i := range count {
			for id, n := range c.nodes() {
				_, err := n.Election(fmt.Sprintf("g%04d", i), cluster.ElectionConfig{NotCandidate: id != "a"})
				require.NoError(t, err)
			}
		}
		time.Sleep(2 * election)
		requireSums(t, c, count+1)
		singles, _ := logs.lines("b", " transition:")
		_, counted := logs.lines("b", " transitions:")
		lost := c.Node("b").Stats().RecordsLost

		c.Crash("a")
		time.Sleep(2 * election)
		more, _ := logs.lines("b", " transition:")
		sums, all := logs.lines("b", " transitions:")
		require.LessOrEqual(t, len(more)-len(singles), 200, "100 in each of at most two seconds")
		require.Equal(t, count+1, len(more)-len(singles)+all-counted, "each is told or counted")
		last := sums[len(sums)-1]
		for _, part := range []string{"from=FOLLOWER", "to=FOLLOWER", "leader= lost=a "} {
			require.Contains(t, last, part)
		}
		require.Positive(t, c.Node("b").Stats().RecordsLost-lost, "what is left out is counted")
		require.Equal(t, count+1, c.Node("b").StatusOf(cluster.Selection{Few: 1}).Elections.WithoutLeader)
		dir := c.DataDir("b")
		c.stopAll()
		records, _, err := recording.Read(dir, recording.History)
		require.NoError(t, err)
		led := recording.Leaderships(records)
		i := slices.IndexFunc(led, func(l recording.Leadership) bool {
			return l.Group == cluster.DefaultGroup
		})
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, "a", led[i].Leader)
		require.NotEmpty(t, led[i].Reason)
	}, clustertest.Configure(configure))
}

// requireSums demands that a leads all elections, as all three sum up.
func requireSums(t *testing.T, c *testCluster, count int) {
	for id, n := range c.nodes() {
		st := n.StatusOf(cluster.Selection{Few: 32, Top: 3})
		require.Len(t, st.Groups, 4)
		require.Equal(t, cluster.DefaultGroup, st.Groups[0].Group)
		sums := *st.Elections
		require.Equal(t, count, sums.Open)
		require.Equal(t, map[cluster.NodeID]int{"a": count}, sums.Leaders, id)
		require.Zero(t, sums.WithoutLeader)
		require.Zero(t, sums.LongestWithout)
		require.EqualValues(t, 1, sums.HighestTerm)
		require.Equal(t, 2, sums.Quorum)
		role, leading := "FOLLOWER", 0
		if id == "a" {
			role, leading = "LEADER", count
		}
		require.Equal(t, map[string]int{role: count}, sums.Roles)
		require.Equal(t, leading, sums.Leading)
	}
}

// TestWhatASelectionLists is about one node without a leader: in which order, how many, what page.
func TestWhatASelectionLists(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.Stop("b")
		c.Stop("c")
		n := c.Node("a")
		time.Sleep(election)
		for _, name := range []string{"x3", "x1", "y1", "x2"} { // each without leader for less time
			_, err := n.Election(name, cluster.ElectionConfig{})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		for _, v := range []struct {
			sel    cluster.Selection
			groups string
			open   int // in the sums; 0 if there are none
			next   string
		}{
			{cluster.Selection{}, "default x1 x2 x3 y1", 0, ""},
			{cluster.Selection{Few: 5, Top: 1}, "default x1 x2 x3 y1", 0, ""},
			{cluster.Selection{Few: 4, Top: 3}, "default x3 x1 y1", 5, ""},
			{cluster.Selection{Few: 4}, "default", 5, ""},
			{cluster.Selection{Few: 1, Top: 9}, "default x3 x1 y1 x2", 5, ""},
			{cluster.Selection{Prefix: "x", Few: 2, Top: 2}, "x3 x1", 3, ""},
			{cluster.Selection{Prefix: "x"}, "x1 x2 x3", 0, ""},
			{cluster.Selection{Limit: 2}, "default x1", 0, "x1"},
			{cluster.Selection{Limit: 3, After: "x1"}, "x2 x3 y1", 0, ""},
			{cluster.Selection{Limit: 1, After: "x1", Prefix: "x"}, "x2", 0, "x2"},
			{cluster.Selection{After: "a"}, "default x1 x2 x3 y1", 0, ""},
			{cluster.Selection{Group: "y1"}, "y1", 0, ""},
			{cluster.Selection{Group: "y"}, "", 0, ""},
		} {
			st := n.StatusOf(v.sel)
			var groups []string
			for _, g := range st.Groups {
				groups = append(groups, g.Group)
			}
			require.Equal(t, v.groups, strings.Join(groups, " "), "%+v", v.sel)
			require.Equal(t, v.next, st.Next, "%+v", v.sel)
			require.Len(t, st.Members, 2, "whatever is selected")
			if v.open == 0 {
				require.Nil(t, st.Elections, "%+v", v.sel)
				continue
			}
			require.Equal(t, v.open, st.Elections.Open, "%+v", v.sel)
			require.Equal(t, v.open, st.Elections.WithoutLeader, "%+v", v.sel)
			require.Len(t, n.StatsOf(v.sel).Elections, len(groups))
		}
		sums := n.StatsOf(cluster.Selection{Few: 1}).Sums
		require.InDelta(t, 14, float64(sums.LongestWithout), 6, "since b and c ended, or since the start")
		require.NoError(t, n.Close(t.Context()))
		c.Closed("a")
		require.Equal(t, 5, n.StatsOf(cluster.Selection{Few: 1}).Sums.Roles["DORMANT"], "as it ended")
	})
}

// Where there are leaders, the youngest transition comes first.
func TestTheYoungestTransitionsAreNotable(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		for _, name := range []string{"x2", "x1", "x3"} {
			c.open(name, nil)
			time.Sleep(election)
		}
		st := c.Node("a").StatusOf(cluster.Selection{Few: 1, Top: 2})
		require.Equal(t, []string{cluster.DefaultGroup, "x3", "x1"},
			[]string{st.Groups[0].Group, st.Groups[1].Group, st.Groups[2].Group})
		require.Equal(t, 4, st.Elections.Leading)
	})
}

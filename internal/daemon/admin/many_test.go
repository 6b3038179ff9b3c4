package admin

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// openMany opens elections t0001 and so on, until that many are open in all.
func openMany(t *testing.T, node *cluster.Node, count int) {
	for i := len(node.Elections(cluster.Selection{})); i < count; i++ {
		_, err := node.Election(fmt.Sprintf("t%04d", i), cluster.ElectionConfig{})
		require.NoError(t, err)
	}
}

func TestANodeWithTwoThousandElectionsAnswersInBrief(t *testing.T) {
	node, c := serve(t, nil)
	openMany(t, node, summary.Few)
	_, few := request(t, c, "GET", "/v1/status", "")
	require.NotContains(t, few, `"elections"`)
	require.Equal(t, summary.Few, strings.Count(few, `"explanation"`), "all, as ever")

	const count = 2000
	openMany(t, node, count)
	require.Eventually(t, func() bool {
		return node.StatsOf(cluster.Selection{Few: 1}).Sums.Leading == count
	}, testkit.Limit(20*time.Second), 10*time.Millisecond)
	st, err := c.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, count, st.Elections.Open)
	require.Equal(t, map[string]int{"LEADER": count}, st.Elections.Roles)
	require.Equal(t, map[cluster.NodeID]int{"a": count}, st.Elections.Leaders)
	require.Len(t, st.Groups, 11)
	require.Equal(t, cluster.DefaultGroup, st.Groups[0].Group)
	for _, path := range []string{"/v1/status", "/v1/status?top=1", "/metrics", "/readyz"} {
		_, text := request(t, c, "GET", path, "")
		require.Less(t, len(text), 40_000, path)
	}
	_, said := request(t, c, "GET", "/metrics", "")
	require.Equal(t, 1, strings.Count(said, "\nbmqelect_role{"), "the default one has series")
	require.Contains(t, said, fmt.Sprintf("\nbmqelect_elections_leading %d\n", count))

	var names []string
	for sel := (cluster.Selection{Prefix: "t0", Limit: 400}); ; sel.After = st.Next {
		st, err = c.StatusOf(t.Context(), sel)
		require.NoError(t, err)
		require.LessOrEqual(t, len(st.Groups), 400)
		for _, g := range st.Groups {
			names = append(names, g.Group)
		}
		if st.Next == "" {
			break
		}
	}
	require.Len(t, names, 999, "from t0001 to t0999")
	require.IsIncreasing(t, names)
	for group, found := range map[string]int{"t1999": 1, "t2000": 0} {
		st, err = c.StatusOf(t.Context(), cluster.Selection{Group: group})
		require.NoError(t, err)
		require.Len(t, st.Groups, found, group)
	}
	after, err := c.Tell(t.Context(), StepDownRequest{For: "10m", Group: "t0007"})
	require.NoError(t, err)
	require.Positive(t, GroupIn(after, "t0007").RestLeft)
	after, err = c.Tell(t.Context(), PreparedRequest{Ready: true, Group: "t0008"})
	require.NoError(t, err)
	require.Equal(t, "t0008", GroupIn(after, "t0008").Group, "the election that was meant is there")
	c.says(t, http.StatusServiceUnavailable, "group t0007: no leader", "GET", "/readyz", "")
}

// Thousands of elections are opened and elected in a moment: a reader of one has each of its
// transitions, a reader of all has few events that count all, and the place of a reader whom none
// of them concerns moves on.
func TestMassesOfTransitionsAreFewEvents(t *testing.T) {
	const count = 1500
	node, c := serve(t, nil)
	leads(t, node)
	texts := map[string]string{}
	began := placeOf(t, c)
	read := func(query string) (ended chan string) {
		ended = make(chan string, 1)
		resp, err := c.send(t.Context(), http.MethodGet, "/v1/events?"+query, nil)
		require.NoError(t, err)
		go func() {
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			ended <- string(text)
		}()
		return ended
	}
	queries := map[string]chan string{}
	for _, q := range []string{
		"", "group=t1499", "prefix=t0&kind=probe&kind=record", "prefix=u", "prefix=u&kind=probe",
	} {
		queries[q] = read(q)
	}
	start := time.Now()
	openMany(t, node, count)
	require.Eventually(t, func() bool {
		return node.StatsOf(cluster.Selection{Few: 1}).Sums.Leading == count
	}, testkit.Limit(20*time.Second), 10*time.Millisecond)
	require.NoError(t, node.Close(t.Context()))
	for q, ended := range queries {
		texts[q] = <-ended
	}
	single, massed := tell(t, texts[""])
	require.LessOrEqual(t, len(single), atATime*(2+int(time.Since(start).Seconds())))
	require.GreaterOrEqual(t, len(single)+massed, 3*(count-1), "started, elected, stopped")
	require.Less(t, strings.Count(texts[""], "event: "+masses), 50)
	require.NotContains(t, texts[""], "event: reset")

	single, massed = tell(t, texts["group=t1499"])
	require.Zero(t, massed)
	var reasons []string
	for _, e := range single {
		require.Equal(t, "t1499", e.Group)
		reasons = append(reasons, e.Reason)
	}
	require.Equal(t, []string{"STARTED", "PROPOSED", "ELECTED", "STOPPED"}, reasons)
	single, massed = tell(t, texts["prefix=t0&kind=probe&kind=record"])
	require.Zero(t, len(single)+massed)
	single, massed = tell(t, texts["prefix=u"])
	require.Empty(t, single)
	require.Positive(t, massed, "some may be of its elections")

	ids := regexp.MustCompile(`(?m)^id: (\S+)$`).FindAllStringSubmatch(
		texts["prefix=u&kind=probe"], -1)
	require.NotEqual(t, began, ids[len(ids)-1][1])
	_, text := exchange(t, c, "GET", "/v1/events?prefix=u&kind=probe&after="+ids[len(ids)-1][1], "")
	require.NotContains(t, text, "event: reset")
}

// tell returns the single transitions of a stream, and how many others it counts.
func tell(t *testing.T, stream string) (single []Event, massed int) {
	d := Stream{Event: func(e Event) {
		if e.Transitions == 0 {
			single = append(single, e)
		}
		massed += e.Transitions
	}}
	require.NoError(t, d.read(strings.NewReader(stream), func() {}))
	return single, massed
}

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// An election with a prefix is opened at one node, and all take part; it is closed, and stays so.
func TestElectionsOpenAndCloseOnRunningNodes(t *testing.T) {
	t.Parallel()
	options := nodes.Quick()
	options["prefixes"] = "job/,late/"
	s := nodes.Play(t, 3, options)
	led := s.Agree(s.Nodes(), nodes.Above(0))
	n1 := s.Named("n1")
	client := admin.NewClient(n1.AdminAddr)
	for i := range 5 {
		st, err := client.Tell(t.Context(), admin.OpenRequest{Name: fmt.Sprint("job/", i)})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("job/", i), st.Groups[0].Group)
	}
	at := s.Admins()
	list := func(args ...string) string {
		return nodes.Does(t, append([]string{"elections", "list", "--admin", at}, args...)...)
	}
	for _, n := range s.Nodes() {
		s.Eventually("all take part on "+n.Name, func() bool {
			page, err := admin.NewClient(n.AdminAddr).Elections(t.Context(),
				cluster.Selection{Prefix: "job/", Limit: 10})
			require.NoError(t, err)
			for _, g := range page.Elections {
				if g.Leader == "" {
					return false
				}
			}
			return len(page.Elections) == 5
		})
	}
	text := list("--limit", "2")
	leader := string(led.Leader)
	require.Regexp(t, `(?m)^ELECTION +LEADER +TERM +ROLE OF `+leader+`\ndefault +`+leader, text)
	require.Contains(t, text, `there are more: --after "job/0"`)
	require.Equal(t, 5, strings.Count(list("--after", "default"), "job/"))
	require.Equal(t, 5, strings.Count(list("--prefix", "job/", "--json"), `"group"`))

	require.Equal(t, 3, strings.Count(nodes.Does(t, "elections", "open", "late/1", "--admin", at),
		" takes part in election late/1\n"))
	require.Equal(t, 3, strings.Count(nodes.Does(t, "elections", "close", "job/3", "--admin", at),
		" takes no part any more in election job/3\n"))
	for _, n := range s.Nodes() {
		page, err := admin.NewClient(n.AdminAddr).Elections(t.Context(), cluster.Selection{})
		require.NoError(t, err)
		var names []string
		for _, g := range page.Elections {
			names = append(names, g.Group)
		}
		require.Equal(t, []string{"default", "job/0", "job/1", "job/2", "job/4", "late/1"}, names)
	}
	nodes.Fails(t, 1, `must begin with one of the configured prefixes (job/, late/)`,
		"elections", "open", "other", "--admin", at)
	n2 := s.Named("n2")
	nodes.Fails(t, 1, `voter n2 was not told: `+n2.AdminAddr+`: node n2 has no election "job/3" open`,
		"elections", "close", "job/3", "--admin", at)
	nodes.Fails(t, 1, `limit is "-1", but must be a number from 1 to 1000`,
		"elections", "list", "--limit", "-1", "--admin", at)
}

package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// An election with a prefix is opened at one node, and all take part; it is closed, and stays so.
func TestElectionsOpenAndCloseOnRunningNodes(t *testing.T) {
	t.Parallel()
	options := nodes.Quick()
	options["prefixes"] = "{job/: {}, late/: {not-candidate: true}}"
	s := nodes.Play(t, 3, options)
	led := s.Agree(s.Nodes(), nodes.Above(0))
	n1 := s.Named("n1")
	client := admin.NewClient(n1.AdminAddr)
	for i := range 5 {
		g, err := client.OpenElection(t.Context(), fmt.Sprint("job/", i))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("job/", i), g.Group)
	}
	list := func(addr string, args ...string) string {
		return nodes.Does(t, append([]string{"elections", "list", "--admin", addr}, args...)...)
	}
	for _, n := range s.Nodes() {
		s.Eventually("all take part on "+n.Name, func() bool {
			var page admin.Elections
			text := list(n.AdminAddr, "--prefix", "job/", "--json")
			require.NoError(t, json.Unmarshal([]byte(text), &page))
			for _, g := range page.Elections {
				if g.Leader == "" {
					return false
				}
			}
			return len(page.Elections) == 5
		})
	}
	text := list(n1.AdminAddr, "--limit", "2")
	require.Regexp(t, `(?m)^ELECTION +LEADER +TERM +ROLE\ndefault +`+string(led.Leader), text)
	require.Contains(t, text, `n1 has more: --after "job/0"`)
	rest := list(n1.AdminAddr, "--after", "default", "--limit", "0")
	require.Equal(t, 5, strings.Count(rest, "job/"))

	at := s.Admins()
	require.Equal(t, 3, strings.Count(nodes.Does(t, "elections", "open", "late/1", "--admin", at),
		" takes part in election late/1\n"))
	require.Equal(t, 3, strings.Count(nodes.Does(t, "elections", "close", "job/3", "--admin", at),
		" takes no part any more in election job/3\n"))
	for _, n := range s.Nodes() {
		require.NotContains(t, list(n.AdminAddr), "job/3")
		require.Contains(t, list(n.AdminAddr), "late/1")
	}
	nodes.Fails(t, 1, `must begin with one of the configured prefixes (job/, late/)`,
		"elections", "open", "other", "--admin", at)
	n2 := s.Named("n2")
	nodes.Fails(t, 1, `voter n2: `+n2.AdminAddr+`: node n2 has no election "job/3" open`,
		"elections", "close", "job/3", "--admin", at)
	nodes.Fails(t, 2, "--limit is -1", "elections", "list", "--limit", "-1", "--admin", at)
}

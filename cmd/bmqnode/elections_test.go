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
	s.Agree(s.Nodes(), nodes.Above(0))
	n1 := s.Named("n1")
	client := admin.NewClient(n1.AdminAddr)
	for i := range 5 {
		st, err := client.Tell(t.Context(), admin.OpenRequest{Name: fmt.Sprint("job/", i)})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("job/", i), st.Groups[0].Group)
	}
	at := s.Admins()
	for _, n := range s.Nodes() {
		s.Eventually("all take part on "+n.Name, func() bool {
			page, err := admin.NewClient(n.AdminAddr).StatusOf(t.Context(),
				cluster.Selection{Prefix: "job/", Limit: 10})
			require.NoError(t, err)
			for _, g := range page.Groups {
				if g.Leader == "" {
					return false
				}
			}
			return len(page.Groups) == 5
		})
	}
	text := nodes.Does(t, "status", "--prefix", "job/", "--limit", "2", "--admin", at)
	require.Equal(t, 6, strings.Count(text, "\njob/"))
	require.Contains(t, text, "there are more: --after job/1")

	require.Equal(t, 3, strings.Count(nodes.Does(t, "elections", "open", "late/1", "--admin", at),
		" takes part in election late/1\n"))
	require.Equal(t, 3, strings.Count(nodes.Does(t, "elections", "close", "job/3", "--admin", at),
		" takes no part any more in election job/3\n"))
	for _, n := range s.Nodes() {
		page, err := admin.NewClient(n.AdminAddr).Status(t.Context())
		require.NoError(t, err)
		var names []string
		for _, g := range page.Groups {
			names = append(names, g.Group)
		}
		require.Equal(t, []string{"default", "job/0", "job/1", "job/2", "job/4", "late/1"}, names)
	}
	require.Contains(t, nodes.Does(t, "elections"), "'bmqnode status' lists them")
	nodes.Fails(t, 1, `must begin with one of the configured prefixes (job/, late/)`,
		"elections", "open", "other", "--admin", at)
	n2 := s.Named("n2")
	nodes.Fails(t, 1, `voter n2 was not told: `+n2.AdminAddr+`: node n2 has no election "job/3" open`,
		"elections", "close", "job/3", "--admin", at)
}

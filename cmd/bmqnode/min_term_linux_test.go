package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// The page's way is played: what the fence says is done, and it admits the leader again.
func TestProcessesThatLostEveryDiskStartAboveTheirFences(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	options := quick()
	options["on-leader"] = `echo "$BMQ_LSN" >>` + tokens
	s := play(t, 3, options)
	var fence lsn.Fence
	// admit asks the fence about the token that the next leader gives its hook.
	admit := func(next func(cluster.GroupStatus) bool) (cluster.GroupStatus, error) {
		g := s.agree(s.Nodes(), next)
		var token lsn.LSN
		s.eventually("the leader's token", func() bool {
			text, _ := os.ReadFile(tokens)
			lines := strings.Fields(string(text))
			if len(lines) > 0 {
				token, _ = lsn.Parse(lines[len(lines)-1])
			}
			return token.Term >= g.Term
		})
		return g, fence.Admit(token)
	}
	again := func(disks bool, edit func(config string) string) {
		require.NoError(t, os.Remove(tokens))
		for _, n := range s.Nodes() {
			require.NoError(t, n.Kill())
			if !disks {
				require.NoError(t, os.RemoveAll(filepath.Join(n.Dir, "state")))
			}
			text, err := os.ReadFile(n.ConfigFile)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(n.ConfigFile, []byte(edit(string(text))), 0o600))
		}
		require.NoError(t, s.Start())
	}

	g, err := admit(nil)
	require.NoError(t, err)
	for g.Term < 3 {
		does(t, "transfer", "--admin", s.node(g.Leader).AdminAddr)
		g, err = admit(above(g.Term))
		require.NoError(t, err)
	}

	again(false, strings.Clone)
	_, err = admit(nil)
	require.ErrorAs(t, err, new(*lsn.StaleError))
	advice := regexp.MustCompile(`start the nodes with a minimum term above (\d+) \(MinTerm, --min-term\)`)
	require.Regexp(t, advice, err.Error())
	least := advice.FindStringSubmatch(err.Error())[1]
	require.Equal(t, fence.Newest().Term.String(), least)

	again(false, func(config string) string { return config + "min-term: " + least + "\n" })
	g, err = admit(nil)
	require.NoError(t, err)
	for _, n := range s.Nodes() {
		require.True(t, s.logged(n, "minimum term configured", `"min-term":`+least))
	}
	again(true, func(config string) string {
		return strings.Replace(config, "min-term: "+least+"\n", "", 1)
	})
	_, err = admit(above(g.Term))
	require.NoError(t, err, "the term is on disk")
}

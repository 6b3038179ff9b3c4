package ask

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", name))
	require.NoError(t, err)
	return string(text)
}

func TestEveryKindHasAnEntryAndEveryEntryAKind(t *testing.T) {
	var entries []string
	for part := range strings.SplitSeq(page(t, errorsPage), "\n## ") {
		name, body, _ := strings.Cut(part, "\n")
		if strings.HasPrefix(name, "# ") {
			continue
		}
		entries = append(entries, name)
		for _, word := range []string{"\n**Seen**: ", "**Cause**:", "\n\n**Fix**: "} {
			require.Equal(t, 1, strings.Count(body, word), "%s, %s", name, word)
		}
	}
	var kinds []string
	for k := range catalogue {
		kinds = append(kinds, string(k))
		require.NotEmpty(t, catalogue[k].fix, k)
		require.Equal(t, "docs/errors.md#"+string(k), see(k))
	}
	require.ElementsMatch(t, kinds, entries)
}

// TestEverySettingHasItsWayToBeChanged: what is right for a timer is an outage without need
// for others.
func TestEverySettingHasItsWayToBeChanged(t *testing.T) {
	_, text, _ := strings.Cut(page(t, "docs/operations.md"), "\n**Changing them**\n")
	text, _, _ = strings.Cut(text, "\n## ")
	atOnce, oneByOne, _ := strings.Cut(text, "leaders possible.")
	require.NotEmpty(t, oneByOne)
	var settings []string
	for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(text, -1) {
		settings = append(settings, m[1])
	}
	agreed := cluster.Config{}.Agreed()
	agreed["quorum"] = agreed["quorum-rule"] // the flag's name
	delete(agreed, "quorum-rule")
	require.ElementsMatch(t, slices.Collect(maps.Keys(agreed)), settings)
	require.Contains(t, atOnce, "`lease`", "leases exclude each other only if they are equal")
	advice := findings.SettingsDiffer.Advice()
	require.Contains(t, advice, "if one node is wrong, correct it and restart it alone")
	require.Contains(t, advice, "stop all, change all, start all (lease, heartbeat timers, unsafe)")
	require.Contains(t, advice, "otherwise restart one by one")
}

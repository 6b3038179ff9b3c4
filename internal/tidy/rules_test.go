package tidy

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// protocol is the page whose rules the code cites.
const protocol = "docs/protocol.md"

var (
	heading  = regexp.MustCompile(`(?m)^##+ (\d+(?:\.\d+)?) `)
	citation = regexp.MustCompile(`\x{a7}(\d*(?:\.\d+)?)`)
)

func TestRulesAreCited(t *testing.T) {
	require.Empty(t, uncited(t, repository()))
}

// uncited returns a line for each citation of a rule that the protocol does not have, and
// for each rule (a section of a section) that no Go file outside tests cites.
func uncited(t *testing.T, root fs.FS) (broken []string) {
	t.Helper()
	text, err := fs.ReadFile(root, protocol)
	require.NoError(t, err)
	rules := map[string]bool{} // and whether the code cites it
	for _, rule := range matches(heading, text) {
		if _, twice := rules[rule]; twice {
			broken = append(broken, fmt.Sprintf("%s: %s stands there twice", protocol, rule))
		}
		rules[rule] = !strings.Contains(rule, ".")
	}
	for _, name := range paths(t, root, isText) {
		text, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		for _, rule := range matches(citation, text) {
			if _, known := rules[rule]; !known {
				broken = append(broken, fmt.Sprintf("%s: %s has no \u00a7%s", name, protocol, rule))
			} else if isGo(name) && !strings.HasSuffix(name, "_test.go") {
				rules[rule] = true
			}
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		if !rules[rule] {
			broken = append(broken, fmt.Sprintf("%s: no code cites \u00a7%s", protocol, rule))
		}
	}
	return broken
}

func TestUncitedRulesAreNoticed(t *testing.T) {
	sign := "\u00a7" // so that this file does not cite them itself
	got := uncited(t, tree(map[string]string{
		protocol:      "## 1 Roles\n## 2 Votes\n### 2.1 Yes\n### 2.2 No\n### 2.3 Maybe\n### 2.1 Yes\n",
		"a/a.go":      "package a // " + sign + "2.1: yes. Also " + sign + "1.",
		"a/b.go":      "package a // " + sign + "2.9 and " + sign + "x",
		"a/a_test.go": "package a // " + sign + "2.2 is tested, " + sign + "3 is not",
		"README.md":   "see " + sign + "2.3, " + sign + "2.4",
	}))
	require.Equal(t, []string{
		protocol + ": 2.1 stands there twice",
		"README.md: " + protocol + " has no " + sign + "2.4",
		"a/a_test.go: " + protocol + " has no " + sign + "3",
		"a/b.go: " + protocol + " has no " + sign + "2.9",
		"a/b.go: " + protocol + " has no " + sign,
		protocol + ": no code cites " + sign + "2.2",
		protocol + ": no code cites " + sign + "2.3",
	}, got)
}

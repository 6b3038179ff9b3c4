package tidy

import (
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"path"
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
	// page is a reference to a Markdown file of the tree: no address of the web, and
	// nothing hidden.
	page = regexp.MustCompile(`(?:^|[^\w./:-])((?:\.\./)*\w[\w-]*(?:/\w[\w-]*)*\.md)\b`)
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

func TestPagesThatAreReferredToExist(t *testing.T) {
	require.Empty(t, missingPages(t, repository()))
}

// missingPages returns a line for each Markdown file that a document, or the code, refers
// to and that is not there. Of test files only the comments count: tests make files.
func missingPages(t *testing.T, root fs.FS) (broken []string) {
	t.Helper()
	look := func(name, text string) {
		for _, ref := range matches(page, []byte(text)) {
			places := []string{ref, path.Join(path.Dir(name), ref), path.Join("docs", ref)}
			exists := func(place string) bool { _, err := fs.Stat(root, place); return err == nil }
			if !slices.ContainsFunc(places, exists) {
				broken = append(broken, fmt.Sprintf("%s: %s is not there", name, ref))
			}
		}
	}
	for _, name := range paths(t, root, func(name string) bool { return path.Ext(name) == ".md" }) {
		text, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		look(name, string(text))
	}
	for _, f := range goFiles(t, root) {
		for _, comment := range f.syntax.Comments {
			look(f.path, comment.Text())
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && !f.test {
				look(f.path, text.Value)
			}
			return true
		})
	}
	return broken
}

func TestMissingPagesAreNoticed(t *testing.T) {
	got := missingPages(t, tree(map[string]string{
		"README.md":      "[a](docs/a.md#x), https://host/of/others.md, [b](docs/b.md)",
		"docs/a.md":      "[up](../README.md) [out](../missing.md) a.md",
		"a/a.go":         "package a // see a.md and PROTO" + "COL.md\nvar s = \"docs/c.md\"",
		"a/a_test.go":    "package a // see d.md\nvar s = \"made.md\"",
		".github/not.md": "e.md",
	}))
	require.Equal(t, []string{
		"README.md: docs/b.md is not there",
		"docs/a.md: ../missing.md is not there",
		"a/a.go: PROTO" + "COL.md is not there",
		"a/a.go: docs/c.md is not there",
		"a/a_test.go: d.md is not there",
	}, got)
}

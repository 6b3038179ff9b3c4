package tidy

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// page is a reference to a Markdown file of the tree: no address of the web, and
	// nothing hidden.
	page = regexp.MustCompile(`(?:^|[^\w./:-])((?:\.\./)*\w[\w-]*(?:/\w[\w-]*)*\.md)\b`)
	// testName is what tests, benchmarks and fuzz targets are called.
	testName = regexp.MustCompile(`\b((?:Test|Fuzz|Benchmark|Example)[A-Z]\w*)`)
	// promise is an entry of the list of promises: its number, and its text.
	promise = regexp.MustCompile(`(?m)^(\d+)\. (.*(?:\n   .*)*)`)
	// shown is what shows a promise: the brackets at its end.
	shown = regexp.MustCompile(`\(([^()]*)\)$`)
)

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

func TestTestsThatPagesNameExist(t *testing.T) {
	require.Empty(t, missingTests(t, repository()))
	safety, err := fs.ReadFile(repository(), "docs/safety.md")
	require.NoError(t, err)
	entries := promise.FindAllSubmatch(safety, -1)
	require.Greater(t, len(entries), 15)
	for _, entry := range entries {
		require.Regexp(t, testName, shown.FindString(string(entry[2])),
			"promise %s is shown by a test", entry[1])
	}
}

// missingTests returns a line for each test that a document names and that is in no file.
func missingTests(t *testing.T, root fs.FS) (broken []string) {
	t.Helper()
	defined := map[string]bool{}
	for _, f := range goFiles(t, root) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test {
				defined[fn.Name.Name] = true
			}
		}
	}
	for _, doc := range paths(t, root, func(name string) bool { return path.Ext(name) == ".md" }) {
		text, err := fs.ReadFile(root, doc)
		require.NoError(t, err)
		for _, name := range matches(testName, text) {
			if !defined[name] {
				broken = append(broken, fmt.Sprintf("%s: there is no %s", doc, name))
			}
		}
	}
	return broken
}

func TestMissingTestsAreNoticed(t *testing.T) {
	got := missingTests(t, tree(map[string]string{
		"docs/a.md":   "TestThis, TestThat, `FuzzIt`, Testing, aTestX, -run TestNo",
		"a/a_test.go": "package a\nfunc TestThis() {}\nfunc FuzzIt() {}",
		"a/a.go":      "package a\nfunc TestThat() {}",
	}))
	require.Equal(t, []string{
		"docs/a.md: there is no TestThat",
		"docs/a.md: there is no TestNo",
	}, got)
}

package tidy

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// page is a reference to a Markdown file of the tree, or to a heading in it: no address of
	// the web, and nothing hidden.
	page = regexp.MustCompile(`(?:^|[^\w./:-])((?:\.\./)*\w[\w-]*(?:/\w[\w-]*)*\.md(?:#[\w-]+)?)\b`)
	// here is a link to a heading of the same page.
	here  = regexp.MustCompile(`\]\(#([\w-]+)\)`)
	title = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// noAnchor is what the anchor of a heading leaves out.
	noAnchor = regexp.MustCompile(`[^\pL\d _-]`)
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

// anchors are the names by which links mean the headings of a page.
func anchors(t *testing.T, root fs.FS, name string) (all []string) {
	text, err := fs.ReadFile(root, name)
	require.NoError(t, err)
	for _, h := range matches(title, text) {
		h = noAnchor.ReplaceAllString(strings.ToLower(h), "")
		all = append(all, strings.ReplaceAll(h, " ", "-"))
	}
	return all
}

// missingPages returns a line for each Markdown file, or heading of one, that a document or the
// code refers to and that is not there. Of test files only the comments count: tests make files.
func missingPages(t *testing.T, root fs.FS) (broken []string) {
	t.Helper()
	look := func(name, text string) {
		for _, ref := range matches(page, []byte(text)) {
			file, anchor, _ := strings.Cut(ref, "#")
			places := []string{file, path.Join(path.Dir(name), file), path.Join("docs", file)}
			exists := func(place string) bool { _, err := fs.Stat(root, place); return err == nil }
			at := slices.IndexFunc(places, exists)
			if at < 0 || anchor != "" && !slices.Contains(anchors(t, root, places[at]), anchor) {
				broken = append(broken, fmt.Sprintf("%s: %s is not there", name, ref))
			}
		}
	}
	prose := func(name string) bool { return slices.Contains([]string{".md", ".yml"}, path.Ext(name)) }
	for _, name := range paths(t, root, prose) {
		text, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		look(name, string(text))
		for _, anchor := range matches(here, text) {
			look(name, path.Base(name)+"#"+anchor)
		}
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
		"docs/a.md":      "[up](../README.md) [out](../missing.md) a.md\n# 1.2 `X` y\n[x](#12-x-y)[y](#y)",
		"a/a.go":         "package a // see a.md and PROTO" + "COL.md\nvar s = \"docs/c.md\"",
		"a/a_test.go":    "package a // see d.md\nvar s = \"made.md\"",
		".github/not.md": "e.md",
	}))
	require.Equal(t, []string{
		"README.md: docs/a.md#x is not there",
		"README.md: docs/b.md is not there",
		"docs/a.md: ../missing.md is not there",
		"docs/a.md: a.md#y is not there",
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

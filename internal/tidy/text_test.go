package tidy

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A stain is what a line must not have. The patterns are written so that this
// file does not match them.
type stain struct {
	pattern *regexp.Regexp
	files   func(name string) bool
	why     string
}

var stains = []stain{
	{regexp.MustCompile(`[^\x00-\x7f\x{a7}]`), isGo,
		"not ASCII; write \\u escapes, but the section sign for a rule of the protocol"},
	{regexp.MustCompile(`\b(TO[D]O|FIX[M]E)\b`), isText, "unfinished; do it or leave it out"},
	{regexp.MustCompile(`(^|[^\w.])/(wor[k]|roo[t]|hom[e])/`), isText, "a path of somebody's machine"},
}

func isText(name string) bool {
	known := []string{".go", ".md", ".txt", ".yml", ".yaml", ".json", ".sh", ".mod"}
	return slices.Contains(known, path.Ext(name)) || name == "Makefile" || name == ".ci/run"
}

func TestTextIsClean(t *testing.T) {
	require.Empty(t, stained(t, repository()))
}

// stained returns a line for each line of text that has a stain.
func stained(t *testing.T, root fs.FS) (broken []string) {
	t.Helper()
	for _, name := range paths(t, root, isText) {
		text, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			for _, s := range stains {
				if s.files(name) && s.pattern.MatchString(line) {
					broken = append(broken, fmt.Sprintf("%s:%d: %s: %s", name, i+1, s.why, line))
				}
			}
		}
	}
	return broken
}

func TestStainsAreNoticed(t *testing.T) {
	for content, why := range map[string]string{
		"package a // caf\u00e9":              "not ASCII",
		"package a // TO" + "DO: write it":    "unfinished",
		"package a // see \"/ro" + "ot/x.y\"": "a path of somebody's machine",
	} {
		got := stained(t, tree(map[string]string{"a/a.go": content}))
		require.Len(t, got, 1, content)
		require.Contains(t, got[0], "a/a.go:1: "+why)
	}
	require.Empty(t, stained(t, tree(map[string]string{
		"a/a.go":    "package a // \u00a74.1",
		"README.md": "caf\u00e9 http://host/wor" + "k/ ./ro" + "ot/", ".git/x.md": "TO" + "DO",
		"a.png": "TO" + "DO",
	})))
}

const widest = 100 // characters of a line of code or text; a tab is one

// unbreakable is what may make a line longer: a row of a table, a link, a command, a long
// string.
var unbreakable = regexp.MustCompile(`^\s*\|.*\||https?://|^    \S|"(\\.|[^"\\]){40,}"` +
	"|`[^`]{40,}")

func TestLinesAreNotTooWide(t *testing.T) {
	require.Empty(t, tooWide(t, repository()))
}

// tooWide returns each line of Go or Markdown that is too long and could be broken.
func tooWide(t *testing.T, root fs.FS) (broken []string) {
	t.Helper()
	isProse := func(name string) bool { return isGo(name) || path.Ext(name) == ".md" }
	for _, name := range paths(t, root, isProse) {
		text, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		raw := false // within a raw string, or a block of code
		for i, line := range strings.Split(string(text), "\n") {
			began := raw
			if strings.Count(line, "`")%2 == 1 {
				raw = !raw
			}
			broad := utf8.RuneCountInString(line) > widest
			if broad && !began && !raw && !unbreakable.MatchString(line) {
				broken = append(broken, fmt.Sprintf("%s:%d: %d characters, limit %d",
					name, i+1, utf8.RuneCountInString(line), widest))
			}
		}
	}
	return broken
}

func TestWideLinesAreNoticed(t *testing.T) {
	words := strings.Repeat("word ", 21)
	want := []string{"a.go:2: 108 characters, limit 100", "b.md:1: 105 characters, limit 100"}
	require.Equal(t, want,
		tooWide(t, tree(map[string]string{
			"a.go": "package a\n// " + words + "\nvar a = \"" + words + "\"\n",
			"b.md": words + "\n| " + words + "|\nhttps://" + words + "\n    " + words + "\n",
		})))
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	require.Empty(t, unexplained(goFiles(t, repository())))
}

// unexplained returns the packages, outside tests, without a package comment.
func unexplained(files []goFile) (broken []string) {
	explained := map[string]bool{}
	for _, f := range files {
		if f.test || strings.Contains(f.path, "testdata/") {
			continue
		}
		explained[f.dir()] = explained[f.dir()] || saysWhat(f)
	}
	for dir, ok := range explained {
		if !ok {
			broken = append(broken, dir+": no file has a package comment (\"// Package name ...\")")
		}
	}
	slices.Sort(broken)
	return broken
}

func saysWhat(f goFile) bool {
	name := f.syntax.Name.Name
	return f.syntax.Doc != nil &&
		(name == "main" || strings.HasPrefix(f.syntax.Doc.Text(), "Package "+name+" "))
}

func TestUnexplainedPackagesAreNoticed(t *testing.T) {
	got := unexplained(goFiles(t, tree(map[string]string{
		"a/a.go": "package a", "a/a_test.go": "// Package a is no help here.\npackage a",
		"b/b.go": "// Package c is another.\npackage b",
		"c/c.go": "package c", "c/doc.go": "// Package c is good.\npackage c",
		"d/d.go": "// Daemon of doom.\npackage main",
	})))
	require.Len(t, got, 2)
	require.Contains(t, got[0], "a: ")
	require.Contains(t, got[1], "b: ")
}

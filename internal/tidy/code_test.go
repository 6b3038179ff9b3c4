package tidy

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	longestFile     = 500 // lines; about 150 is what to aim for
	longestFunction = 60  // lines; what fits a screen
)

// tooLong returns each file and each function outside tests that is longer than its limit.
func tooLong(r repo) (broken []string) {
	for _, f := range r.gos {
		if f.test {
			continue
		}
		if lines := strings.Count(f.text, "\n"); lines > longestFile {
			broken = append(broken, fmt.Sprintf("%s: %d lines, limit %d", f.path, lines, longestFile))
		}
		for _, fn := range f.functions() {
			first, last := f.tokens.Position(fn.Pos()), f.tokens.Position(fn.End())
			if lines := last.Line - first.Line + 1; lines > longestFunction {
				broken = append(broken, fmt.Sprintf("%s: %s has %d lines, limit %d", first, fn.Name.Name,
					lines, longestFunction))
			}
		}
	}
	return broken
}

// unexplained returns each package, outside tests, that has no package comment.
func unexplained(r repo) (broken []string) {
	explained := map[string]bool{}
	for _, f := range r.gos {
		if !f.test && !strings.Contains(f.path, "testdata/") {
			explained[f.dir()] = explained[f.dir()] || hasPackageComment(f)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(explained)) {
		if !explained[dir] {
			broken = append(broken, dir+`: no file has a package comment ("// Package name ...")`)
		}
	}
	return broken
}

func hasPackageComment(f goFile) bool {
	name := f.syntax.Name.Name
	return f.syntax.Doc != nil &&
		(name == "main" || strings.HasPrefix(f.syntax.Doc.Text(), "Package "+name+" "))
}

// clocks are the functions of package time that read a clock or wait for one.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer",
	"NewTicker"}

// pureCode are the folders of the code that decides: time and inputs come to it as data. The
// bans say what it may import.
var pureCode = []string{"scouting/", "elector/", "cluster/internal/leadership/",
	"internal/lab/sim/", "internal/lab/algorithm/", "internal/lab/published",
	"internal/lab/replay"}

// isPure reports whether a folder is one of pureCode, or below one that ends with a slash.
func isPure(dir string) bool {
	return slices.ContainsFunc(pureCode, func(folder string) bool {
		return dir == folder || strings.HasSuffix(folder, "/") && within(dir, folder)
	})
}

// impure returns each goroutine that pure code starts, and each use of a clock there.
func impure(r repo) (broken []string) {
	for _, f := range r.gos {
		if f.test || !isPure(f.dir()) {
			continue
		}
		for n := range ast.Preorder(f.syntax) {
			name := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				name = "go"
			case *ast.SelectorExpr:
				of, _ := n.X.(*ast.Ident)
				switch {
				case n.Sel.Name == "Go": // of a sync.WaitGroup
					name = "go"
				case of != nil && of.Name == "time" && slices.Contains(clocks, n.Sel.Name):
					name = "time." + n.Sel.Name
				}
			}
			if name != "" {
				broken = append(broken, fmt.Sprintf("%s: %s: the core is pure",
					f.tokens.Position(n.Pos()), name))
			}
		}
	}
	return broken
}

// The Makefile tests the packages of its variable PURE without the race detector.
func TestWhatIsNotRacedIsPure(t *testing.T) {
	line := regexp.MustCompile(`PURE = ((?:.|\\\n)+)\n`).FindStringSubmatch(
		read(t, repository()).text("Makefile"))
	require.NotNil(t, line)
	for _, pattern := range strings.Fields(strings.ReplaceAll(line[1], "\\", "")) {
		require.Contains(t, pureCode, strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "..."))
	}
}

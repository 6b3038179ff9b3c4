package tidy

import (
	"fmt"
	"go/ast"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clocks are the functions of package time that look at a clock or wait for one.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer",
	"NewTicker"}

func TestTheCoreHasNoGoroutineAndNoClock(t *testing.T) {
	require.Empty(t, impure(goFiles(t, repository())))
}

// pureCode are the folders of what decides: time and inputs come to it as data. What it may
// import is among the bans. The Makefile's PURE is tested without the race detector.
var pureCode = []string{"scouting/", "elector/", "cluster/internal/leadership/",
	"internal/lab/sim/", "internal/lab/algorithm/", "internal/lab/compare", "internal/lab/replay"}

// isPure reports whether a folder is one of pureCode, or below one that ends with a slash.
func isPure(dir string) bool {
	return slices.ContainsFunc(pureCode, func(folder string) bool {
		return dir == folder || strings.HasSuffix(folder, "/") && within(dir, folder)
	})
}

// What the Makefile tests without the race detector is pure.
func TestWhatIsNotRacedIsPure(t *testing.T) {
	makefile, err := fs.ReadFile(repository(), "Makefile")
	require.NoError(t, err)
	line := regexp.MustCompile(`PURE = ((?:.|\\\n)+)\n`).FindSubmatch(makefile)
	require.NotNil(t, line)
	for _, pattern := range strings.Fields(strings.ReplaceAll(string(line[1]), "\\", "")) {
		require.Contains(t, pureCode, strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "..."))
	}
}

// impure returns a line for each goroutine and each look at a clock in pure code.
func impure(files []goFile) (broken []string) {
	for _, f := range files {
		if f.test || !isPure(f.dir()) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			name := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				name = "go"
			case *ast.SelectorExpr:
				of, ok := n.X.(*ast.Ident)
				if ok && of.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
					name = "time." + n.Sel.Name
				}
			}
			if name != "" {
				broken = append(broken, fmt.Sprintf("%s: %s: the core is pure",
					f.tokens.Position(n.Pos()), name))
			}
			return true
		})
	}
	return broken
}

func TestImpureCodeIsNoticed(t *testing.T) {
	source := "package a\nvar x = time.Now\nfunc f() { go f() }\n"
	require.Equal(t, []string{"elector/a.go:2:9: time.Now: the core is pure",
		"elector/a.go:3:12: go: the core is pure"}, impure(goFiles(t, tree(map[string]string{
		"elector/a.go": source, "elector/a_test.go": source, "netmesh/a.go": source}))))
}

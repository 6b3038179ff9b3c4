package tidy

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	longestFile     = 500 // lines; about 150 is what to aim for
	longestFunction = 60  // lines; what fits a screen
)

func TestSizes(t *testing.T) {
	require.Empty(t, tooLong(goFiles(t, repository())))
}

// tooLong returns a line for each file and function outside tests that is over
// its limit.
func tooLong(files []goFile) (broken []string) {
	for _, f := range files {
		if f.test {
			continue
		}
		if f.lines > longestFile {
			broken = append(broken, fmt.Sprintf("%s: %d lines, limit %d", f.path, f.lines, longestFile))
		}
		broken = append(broken, f.longFunctions()...)
	}
	return broken
}

func (f goFile) longFunctions() (broken []string) {
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := f.tokens.Position(fn.Pos()), f.tokens.Position(fn.End())
		if lines := last.Line - first.Line + 1; lines > longestFunction {
			broken = append(broken, fmt.Sprintf("%s: %s has %d lines, limit %d", first, fn.Name.Name, lines,
				longestFunction))
		}
	}
	return broken
}

func TestLongOnesAreNoticed(t *testing.T) {
	body := func(lines int) string {
		return "package a\n\nfunc f() {\n" +
			strings.Repeat("\n", lines-2) + "}\n"
	}
	require.Empty(t, tooLong(goFiles(t, tree(map[string]string{
		"a/a.go": body(longestFunction), "a/a_test.go": body(longestFile + 1),
	}))))
	got := tooLong(goFiles(t, tree(map[string]string{"a/a.go": body(longestFunction + 1)})))
	require.Equal(t, []string{"a/a.go:3:1: f has 61 lines, limit 60"}, got)
	got = tooLong(goFiles(t,
		tree(map[string]string{"a/a.go": "package a\n" + strings.Repeat("\n", longestFile)})))
	require.Equal(t, []string{"a/a.go: 501 lines, limit 500"}, got)
}

package tidy

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// clocks are the functions of package time that look at a clock or wait for one.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer",
	"NewTicker"}

func TestTheCoreHasNoGoroutineAndNoClock(t *testing.T) {
	require.Empty(t, impure(goFiles(t, repository())))
}

// impure returns a line for each goroutine and each look at a clock in what decides: time
// and inputs come to it as data. What it may import is among the bans.
func impure(files []goFile) (broken []string) {
	for _, f := range files {
		pure := slices.Contains([]string{"scouting", "elector", "elector/detector",
			"cluster/internal/leadership"}, f.dir())
		if f.test || !pure {
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

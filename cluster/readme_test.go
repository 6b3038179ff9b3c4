package cluster_test

import (
	"go/ast"
	"go/parser"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// TestTheFirstCodeOfTheDocsIsTheSame: of the package comment and the README, with fields that
// there are.
func TestTheFirstCodeOfTheDocsIsTheSame(t *testing.T) {
	fields := func(file string) (names []string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, code, found := strings.Cut(string(text), "cluster.Start(ctx, ")
		require.True(t, found, file)
		code, _, found = strings.Cut(strings.ReplaceAll(code, "\n//\t", "\n"), "\n})")
		require.True(t, found, file)
		code += "\n}"
		expr, err := parser.ParseExpr(code)
		require.NoError(t, err, code)
		for _, e := range expr.(*ast.CompositeLit).Elts {
			name := e.(*ast.KeyValueExpr).Key.(*ast.Ident).Name
			_, known := reflect.TypeFor[cluster.Config]().FieldByName(name)
			require.True(t, known, "%s: %s", file, name)
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	inReadme := fields("../README.md")
	require.Contains(t, inReadme, "Election")
	require.Equal(t, inReadme, fields("doc.go"))
}

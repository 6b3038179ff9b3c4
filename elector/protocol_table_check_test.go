package elector_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// TestProtocolTableIsUpToDate compares docs/protocol_table.md with the table, or
// writes it if the flag -rewrite of the scripts is given.
func TestProtocolTableIsUpToDate(t *testing.T) {
	testkit.Golden(t, "../docs/protocol_table.md", protocolTable())
}

// TestProtocolTableIsComplete: every message and every input has its row.
func TestProtocolTableIsComplete(t *testing.T) {
	var kinds []string
	for k := elector.ElectionScouting; k.Valid(); k++ {
		kinds = append(kinds, k.String())
	}
	require.Equal(t, kinds, names(messageTable))
	require.ElementsMatch(t, inputTypes(t), append(names(inputTable), "Received"))
}

func names(rows []reaction) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.name)
	}
	return out
}

// inputTypes are the types with a method isInput, as input.go declares them.
func inputTypes(t *testing.T) []string {
	file, err := parser.ParseFile(token.NewFileSet(), "input.go", nil, 0)
	require.NoError(t, err)
	var types []string
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "isInput" {
			types = append(types, fn.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	return types
}

// TestProtocolTableIsTrue steps machines in every situation of a role with many inputs of a row. If
// the table says nothing, no input may have an effect; otherwise at least one must.
func TestProtocolTableIsTrue(t *testing.T) {
	for _, row := range append(append([]reaction{}, messageTable...), inputTable...) {
		for _, role := range roles {
			t.Run(row.name+" at "+role.String(), func(t *testing.T) {
				acted := false
				for _, s := range situations(t, role) {
					for _, in := range samples(row.name, s) {
						did := acts(s, in)
						require.False(t, did && row.in(role) == "", "%#v is not ignored by %+v", in, s.State())
						acted = acted || did
					}
				}
				require.Equal(t, row.in(role) != "", acted, "something must come of it")
			})
		}
	}
}

package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// messageAt tells which argument of a call that logs at info or above is the
// message. A local log is one of the others, chosen by what happened.
var messageAt = map[string]int{"Info": 0, "Warn": 0, "Error": 0, "log": 0, "warn": 2, "warnRefused": 2}

// passedOn are the calls whose message comes from elsewhere, and the package-level
// map that it comes from; "" if the callers are looked at themselves.
var passedOn = map[string]string{
	"netmesh/logger.go: msg": "",
}

// ofBmqnode are the folders whose code logs in a bmqnode process.
var ofBmqnode = []string{"cluster", "netmesh", "internal", "cmd"}

func TestTheGuideExplainsEveryLogLine(t *testing.T) {
	logged := map[string]bool{}
	for _, folder := range ofBmqnode {
		for message := range messagesIn(t, folder) {
			logged[message] = true
		}
	}
	require.Greater(t, len(logged), 10, "the code is not read right")
	explained := explainedIn(t, "Log lines")
	for _, message := range slices.Sorted(maps.Keys(logged)) {
		require.True(t, explained[message], "docs/operations.md, Log lines, has no row for %q: say what it means and what to do", message)
	}
	for message := range explained {
		require.True(t, logged[message], "docs/operations.md explains %q, which nothing logs", message)
	}
}

func TestTheGuideExplainsEveryReason(t *testing.T) {
	explained := explainedIn(t, "Transitions")
	known := map[string]bool{}
	for r := elector.ReasonNone + 1; !strings.HasPrefix(r.String(), "REASON("); r++ {
		known[r.String()] = true
		require.True(t, explained[r.String()], "docs/operations.md, Transitions, has no row for %s", r)
	}
	require.Len(t, explained, len(known), "it explains reasons that there are not")
}

// explainedIn are the first cells of the table below a heading of the guide, those
// that are code.
func explainedIn(t *testing.T, heading string) map[string]bool {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.+\\|.+\\|$").FindAllStringSubmatch(section, -1) {
		require.False(t, rows[m[1]], "twice: %s", m[1])
		rows[m[1]] = true
	}
	return rows
}

// messagesIn are the messages that a folder's code logs at info and above.
func messagesIn(t *testing.T, folder string) map[string]bool {
	messages := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("../..", folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		within, err := filepath.Rel("../..", name)
		require.NoError(t, err)
		for _, message := range messagesOf(t, filepath.ToSlash(within), file) {
			messages[message] = true
		}
		return nil
	})
	require.NoError(t, err)
	return messages
}

func messagesOf(t *testing.T, name string, file *ast.File) (messages []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		at, logs := messageAt[callee(call)]
		if !logs || len(call.Args) <= at { // as err.Error()
			return true
		}
		if literal, ok := call.Args[at].(*ast.BasicLit); ok {
			messages = append(messages, textOf(t, literal))
			return true
		}
		source, known := passedOn[fmt.Sprintf("%s: %s", name, call.Args[at])]
		require.True(t, known, "%s: a log line whose message is no literal cannot be checked against the guide", name)
		messages = append(messages, valuesOf(t, file, source)...)
		return true
	})
	return messages
}

func callee(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

func textOf(t *testing.T, literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	require.NoError(t, err)
	return text
}

// valuesOf are the strings that a package-level map holds.
func valuesOf(t *testing.T, file *ast.File, name string) (values []string) {
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && v.Names[0].Name == name {
				for _, element := range v.Values[0].(*ast.CompositeLit).Elts {
					values = append(values, textOf(t, element.(*ast.KeyValueExpr).Value.(*ast.BasicLit)))
				}
			}
		}
	}
	return values
}

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
var messageAt = map[string]int{"Info": 0, "Warn": 0, "Error": 0, "log": 0, "warn": 2,
	"warnRefused": 2, "logPeer": 0}

// passedOn are the calls whose message comes from elsewhere, and the package-level
// map that it comes from; "" if the callers are looked at themselves.
var passedOn = map[string]string{
	"netmesh/logger.go: msg": "",
}

// ofBmqnode are the folders whose code logs in a bmqnode process.
var ofBmqnode = []string{
	"cluster", "netmesh", "internal/base", "internal/daemon", "internal/lab", "cmd",
}

// A line explains itself if its message has two parts, what is wrong and what follows,
// or if it has advice.
func TestTheGuideExplainsTheLogLinesThatDoNotExplainThemselves(t *testing.T) {
	unclear := map[string]bool{} // every message; true if it needs an entry
	for _, folder := range ofBmqnode {
		maps.Copy(unclear, messagesIn(t, folder))
	}
	require.Greater(t, len(unclear), 30, "the code is not read right")
	rows := explainedIn(t, "Log lines")
	for _, message := range slices.Sorted(maps.Keys(unclear)) {
		require.True(t, rows[message] || !unclear[message],
			"docs/operations.md, Log lines, has no entry for %q: say what to do", message)
	}
	for message := range rows {
		_, logged := unclear[message]
		require.True(t, logged, "docs/operations.md explains %q, which nothing logs", message)
	}
}

func TestTheGuideExplainsEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "## Transitions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	known := map[string]bool{}
	for r := elector.ReasonNone + 1; !strings.HasPrefix(r.String(), "REASON("); r++ {
		known[r.String()] = true
		require.Contains(t, section, "`"+r.String()+"`", "docs/operations.md, Transitions")
	}
	for _, m := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(section, -1) {
		require.True(t, known[m[1]], "it explains %s, which is no reason", m[1])
	}
}

// explainedIn are the messages that begin the entries of the list below a heading of the
// guide.
func explainedIn(t *testing.T, heading string) map[string]bool {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`: .").FindAllStringSubmatch(
		section, -1) {
		require.False(t, rows[m[1]], "twice: %s", m[1])
		rows[m[1]] = true
	}
	return rows
}

// messagesIn are the messages that a folder's code logs at info and above; true for
// warnings and errors that do not explain themselves.
func messagesIn(t *testing.T, folder string) map[string]bool {
	messages := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("../..", folder), func(name string, entry fs.DirEntry,
		err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") ||
			strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		within, err := filepath.Rel("../..", name)
		require.NoError(t, err)
		messagesOf(t, filepath.ToSlash(within), file, messages)
		return nil
	})
	require.NoError(t, err)
	return messages
}

func messagesOf(t *testing.T, name string, file *ast.File, messages map[string]bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		at, logs := messageAt[callee(call)]
		if !logs || len(call.Args) <= at { // as err.Error()
			return true
		}
		var found []string
		if literal, ok := call.Args[at].(*ast.BasicLit); ok {
			found = append(found, textOf(t, literal))
		} else {
			source, known := passedOn[fmt.Sprintf("%s: %s", name, call.Args[at])]
			require.True(t, known,
				"%s: a log line whose message is no literal cannot be checked against the guide", name)
			found = valuesOf(t, file, source)
		}
		advises := callee(call) == "Info" || slices.ContainsFunc(call.Args[at+1:],
			func(arg ast.Expr) bool {
				literal, ok := arg.(*ast.BasicLit)
				return ok && literal.Value == `"advice"`
			})
		for _, message := range found {
			messages[message] = messages[message] || !advises && !strings.ContainsAny(message, ":;,")
		}
		return true
	})
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

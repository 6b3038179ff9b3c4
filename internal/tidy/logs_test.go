package tidy

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

const guide = "docs/operations.md"

// messageAt tells which argument of a call that logs at info or above is the
// message. A local log is one of the others, chosen by what happened.
var messageAt = map[string]int{"Info": 0, "Warn": 0, "Error": 0, "log": 0, "warn": 2,
	"warnRefused": 2, "logPeer": 0}

// loggers is a file whose calls pass on the message of their callers, which are looked at.
const loggers = "netmesh/logger.go"

// ofBmqnode are the folders whose code logs in a bmqnode process.
var ofBmqnode = []string{
	"cluster", "netmesh", "internal/base", "internal/daemon", "internal/lab", "cmd",
}

var (
	entry  = regexp.MustCompile("(?m)^- `([^`]+)`: .")
	reason = regexp.MustCompile("`([A-Z_]+)`")
)

// A line explains itself if its message has two parts, what is wrong and what follows,
// or if it has advice.
func TestTheGuideExplainsTheLogLinesThatDoNotExplainThemselves(t *testing.T) {
	unclear := map[string]bool{} // every message; true if it needs an entry
	for _, f := range read(t, repository()).gos {
		logs := func(folder string) bool { return within(f.dir(), folder) }
		if !f.test && f.path != loggers && slices.ContainsFunc(ofBmqnode, logs) {
			messagesOf(t, f, unclear)
		}
	}
	require.Greater(t, len(unclear), 30, "the code is not read right")
	explained := matches(entry, sectionOf(t, guide, "Log lines"))
	for message, needsEntry := range unclear {
		require.True(t, !needsEntry || slices.Contains(explained, message),
			"%s, Log lines, has no entry for %q: say what to do", guide, message)
	}
	for i, message := range explained {
		require.NotContains(t, explained[:i], message, "twice")
		require.Contains(t, unclear, message, "%s explains what nothing logs", guide)
	}
}

// messagesOf adds the messages that a file logs at info and above; true for warnings and errors
// that do not explain themselves.
func messagesOf(t *testing.T, f goFile, messages map[string]bool) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := types.ExprString(call.Fun)
		name = name[strings.LastIndex(name, ".")+1:]
		at, logs := messageAt[name]
		if !logs || len(call.Args) <= at { // as err.Error()
			return true
		}
		value, err := types.Eval(f.tokens, nil, token.NoPos, types.ExprString(call.Args[at]))
		require.NoError(t, err, "%s: a message that is no literal cannot be checked against the guide",
			f.path)
		message := constant.StringVal(value.Value)
		plain := name == "Info" || strings.ContainsAny(message, ":;,") ||
			slices.ContainsFunc(call.Args[at+1:], func(arg ast.Expr) bool {
				literal, ok := arg.(*ast.BasicLit)
				return ok && literal.Value == `"advice"`
			})
		messages[message] = messages[message] || !plain
		return true
	})
}

func TestTheGuideExplainsEveryReason(t *testing.T) {
	var known []string
	for r := elector.ReasonNone + 1; !strings.HasPrefix(r.String(), "REASON("); r++ {
		known = append(known, r.String())
	}
	explained := matches(reason, sectionOf(t, guide, "Transitions"))
	require.Subset(t, explained, known)
	require.Subset(t, known, explained)
}

// sectionOf is the text below a heading of a page.
func sectionOf(t *testing.T, page, heading string) string {
	_, section, found := strings.Cut(read(t, repository()).text(page), "## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mutant is a change of one place of a file.
type mutant struct {
	name       string // file, function, kind of change and what it changes
	file       string // from the top of the tree
	source     []byte // of the whole file
	fn         string // function that is changed
	host       *host  // where that function is
	start, end int    // what is replaced
	with       string // what replaces it
}

// show is what the change looks like, for people.
func (m *mutant) show() string {
	line := 1 + strings.Count(string(m.source[:m.start]), "\n")
	return indent(fmt.Sprintf("%s:%d\n- %s\n+ %s", m.file, line,
		oneLine(string(m.source[m.start:m.end])), oneLine(m.with)))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// mutator walks a file, and notes each change that it could make.
type mutator struct {
	file   string
	source []byte
	tokens *token.FileSet
	fn     string // function that it is in
	host   *host
	seen   map[string]int
	found  []mutant
}

// mutate returns every mutant of a source file.
func mutate(file string, source []byte) ([]mutant, error) {
	m := &mutator{file: file, source: source, tokens: token.NewFileSet(), seen: map[string]int{}}
	syntax, err := parser.ParseFile(m.tokens, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || len(fn.Body.List) == 0 || fn.Name.Name == "init" ||
			forPeople(fn.Name.Name) {
			continue
		}
		m.fn, m.host = fn.Name.Name, m.hostOf(syntax.Name.Name, fn)
		m.returnEarly(fn)
		ast.Inspect(fn.Body, m.visit)
	}
	return m.found, nil
}

// forPeople reports whether a function only makes text.
func forPeople(name string) bool {
	return slices.Contains([]string{"String", "GoString", "Error", "MarshalText"}, name)
}

// at is where a position is in the source.
func (m *mutator) at(p token.Pos) int { return m.tokens.Position(p).Offset }

func (m *mutator) text(n ast.Node) string { return string(m.source[m.at(n.Pos()):m.at(n.End())]) }

// longestSnippet is how much of the code about which it is a mutant's name has.
const longestSnippet = 48

// note adds a mutant that replaces the source from start to end. Its name has the code of about.
func (m *mutator) note(kind string, about ast.Node, start, end int, with string) {
	snippet := oneLine(m.text(about))
	if len(snippet) > longestSnippet {
		snippet = snippet[:longestSnippet] + "..."
	}
	name := fmt.Sprintf("%s %s: %s: %s", m.file, m.fn, kind, snippet)
	m.seen[name]++
	if n := m.seen[name]; n > 1 {
		name += " #" + strconv.Itoa(n)
	}
	m.found = append(m.found, mutant{name, m.file, m.source, m.fn, m.host, start, end, with})
}

func (m *mutator) replace(kind string, n ast.Node, with string) {
	m.note(kind, n, m.at(n.Pos()), m.at(n.End()), with)
}

// visit notes what can be changed at a node, and reports whether to go on below it.
func (m *mutator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		if m.isText(n) {
			return false
		}
		m.call(n)
	case *ast.IfStmt:
		m.negate(n.Cond)
	case *ast.CaseClause:
		for _, e := range n.List {
			if isCondition(e) {
				m.negate(e)
			}
		}
	case *ast.ReturnStmt:
		if len(n.Results) == 1 && isCondition(n.Results[0]) {
			m.negate(n.Results[0])
		}
	case *ast.BinaryExpr:
		m.binary(n)
	case *ast.AssignStmt:
		m.assign(n)
	case *ast.IncDecStmt:
		m.replace("drop", n, "_ = 0")
		other := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		m.note("other way", n, m.at(n.TokPos), m.at(n.End()), other)
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !m.isText(call) {
			m.replace("drop", n, "")
		}
	case *ast.BasicLit:
		m.number(n)
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
			m.replace("other value", n, other)
		}
	}
	return true
}

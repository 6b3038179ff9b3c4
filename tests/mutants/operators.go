package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// swaps has for each operator the one that replaces it.
var swaps = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
	token.SHL: token.SHR, token.SHR: token.SHL, token.AND: token.OR, token.OR: token.AND,
	token.AND_NOT: token.AND, token.ADD_ASSIGN: token.SUB_ASSIGN,
	token.SUB_ASSIGN: token.ADD_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN,
	token.AND_ASSIGN: token.OR_ASSIGN,
}

func (m *mutator) swap(n ast.Node, at token.Pos, op token.Token) {
	other, ok := swaps[op]
	if !ok {
		return
	}
	start := m.at(at)
	m.note(op.String()+" is "+other.String(), n, start, start+len(op.String()), other.String())
}

// binary replaces an operator, or drops one side of && or ||.
func (m *mutator) binary(n *ast.BinaryExpr) {
	if isString(n.X) || isString(n.Y) {
		if n.Op == token.ADD { // makes text
			return
		}
	}
	m.swap(n, n.OpPos, n.Op)
	if n.Op == token.LAND || n.Op == token.LOR {
		m.replace("left only", n, m.text(n.X))
		m.replace("right only", n, m.text(n.Y))
	}
}

func isString(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

// isCondition reports whether an expression is, by its form, true or false.
func isCondition(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL,
			token.NEQ, token.LAND, token.LOR}, e.Op)
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	case *ast.ParenExpr:
		return isCondition(e.X)
	}
	return false
}

// negate inverts a condition, except for == and !=: to swap them does the same.
func (m *mutator) negate(e ast.Expr) {
	if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.NOT {
		m.replace("negate", e, m.text(u.X))
		return
	}
	m.replace("negate", e, "!("+m.text(e)+")")
}

// call replaces min by max, and max by min.
func (m *mutator) call(n *ast.CallExpr) {
	name, ok := n.Fun.(*ast.Ident)
	if !ok {
		return
	}
	other, ok := map[string]string{"min": "max", "max": "min"}[name.Name]
	if ok {
		m.note(name.Name+" is "+other, n, m.at(n.Pos()), m.at(name.End()), other)
	}
}

// isText reports whether a call only makes text, for a log or an error.
func (m *mutator) isText(n *ast.CallExpr) bool {
	fn := m.text(n.Fun)
	name := fn[strings.LastIndex(fn, ".")+1:]
	logs := []string{"Trace", "Debug", "Info", "Warn", "Error", "Log", "Sprintf", "Errorf"}
	return slices.Contains(logs, name) || strings.HasPrefix(fn, "fmt.") || fn == "errors.New" ||
		fn == "make" || fn == "panic"
}

// assign drops an assignment, or replaces its operator.
func (m *mutator) assign(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE {
		return
	}
	m.swap(n, n.TokPos, n.Tok)
	blank := strings.Repeat("_, ", len(n.Lhs)-1) + "_"
	op := " = "
	if n.Tok != token.ASSIGN {
		m.replace("drop", n, "_ = "+m.text(n.Rhs[0]))
		return
	}
	values := m.at(n.Rhs[0].Pos())
	m.note("drop", n, m.at(n.Pos()), values, blank+op)
}

// number adds one to a constant.
func (m *mutator) number(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
		m.replace("one more", n, strconv.FormatInt(v+1, 10))
	}
}

// returnEarly lets a function do nothing, and return zero values.
func (m *mutator) returnEarly(fn *ast.FuncDecl) {
	var zeros []string
	if fn.Type.Results != nil {
		for _, f := range fn.Type.Results.List {
			for range max(len(f.Names), 1) {
				zeros = append(zeros, "*new("+m.text(f.Type)+")")
			}
		}
	}
	start := m.at(fn.Body.Lbrace) + 1
	m.note("return at once", fn.Name, start, start, " return "+strings.Join(zeros, ", ")+"\n")
}

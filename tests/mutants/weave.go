package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// host is the function that a mutant is a change of.
type host struct {
	pkg                    string // name of its package
	start, name, body, end int    // where it, the end of its name, its body's text, and its end are
	receiver               string // the receiver and a dot, for a call
	arguments              string // of a call that passes on what it got
	returns                bool   // it has results
}

// hostOf describes a function so that it can call copies of itself.
func (m *mutator) hostOf(pkg string, fn *ast.FuncDecl) *host {
	h := &host{pkg: pkg, start: m.at(fn.Pos()), name: m.at(fn.Name.End()),
		body: m.at(fn.Body.Lbrace) + 1, end: m.at(fn.End()), returns: fn.Type.Results != nil}
	if fn.Recv != nil {
		h.receiver = m.passed(fn.Recv)[0] + "."
	}
	h.arguments = strings.Join(m.passed(fn.Type.Params), ", ")
	return h
}

// passed are the arguments with which a function calls its own copy: its parameters. Those without
// a name it does not use: they are zero values.
func (m *mutator) passed(fields *ast.FieldList) (passed []string) {
	for _, f := range fields.List {
		nothing := "*new(" + m.text(f.Type) + ")"
		if len(f.Names) == 0 {
			passed = append(passed, "("+nothing+")")
		}
		for _, name := range f.Names {
			_, variadic := f.Type.(*ast.Ellipsis)
			switch {
			case variadic:
				passed = append(passed, name.Name+"...")
			case name.Name == "_":
				passed = append(passed, "("+nothing+")")
			default:
				passed = append(passed, name.Name)
			}
		}
	}
	return passed
}

// woven is code with many mutants in it, each in a copy of its function. The environment says
// which one is called instead of the original.
type woven struct {
	files map[string][]byte
	lines map[string]int // by file:line, of which mutant it is
}

// variable is the environment variable that has the number of the mutant that runs. If it is not
// set, none does.
const variable = "MUTANT"

// weave puts mutants of one package into its code, numbered from 1 on.
func weave(mutants []mutant) woven {
	w := woven{map[string][]byte{}, map[string]int{}}
	numbers := map[string][]int{}
	for i, m := range mutants {
		numbers[m.file] = append(numbers[m.file], i+1)
	}
	for file, of := range numbers {
		w.weaveFile(file, mutants, of)
	}
	for _, m := range mutants[:min(1, len(mutants))] {
		w.files[path.Join(path.Dir(m.file), "mutant_chosen.go")] = fmt.Appendf(nil,
			"package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\n"+
				"var mutant__, _ = strconv.Atoi(os.Getenv(%q))\n", m.host.pkg, variable)
	}
	return w
}

// weaveFile puts the mutants of a file into it: a call at the head of each function, and the
// copies at the end of the file.
func (w *woven) weaveFile(file string, mutants []mutant, numbers []int) {
	slices.SortStableFunc(numbers, func(a, b int) int {
		return cmp.Compare(mutants[a-1].host.body, mutants[b-1].host.body)
	})
	source := mutants[numbers[0]-1].source
	var text strings.Builder
	line := func() int { return strings.Count(text.String(), "\n") + 1 }
	from := 0
	for _, n := range numbers {
		h := mutants[n-1].host
		text.Write(source[from:h.body])
		from = h.body
		w.lines[fmt.Sprintf("%s:%d", flat(file), line())] = n
		call := fmt.Sprintf("%s%s__%d(%s)", h.receiver, mutants[n-1].fn, n, h.arguments)
		if h.returns {
			call = "return " + call
		} else {
			call += "; return"
		}
		fmt.Fprintf(&text, " if mutant__ == %d { %s }\n", n, call)
	}
	text.Write(source[from:])
	for _, n := range numbers {
		m := &mutants[n-1]
		text.WriteString("\n")
		first := line()
		text.Write(source[m.host.start:m.host.name])
		fmt.Fprintf(&text, "__%d", n)
		text.Write(source[m.host.name:m.start])
		text.WriteString(m.with)
		text.Write(source[m.end:m.host.end])
		for at := first; at <= line(); at++ {
			w.lines[fmt.Sprintf("%s:%d", flat(file), at)] = n
		}
		text.WriteString("\n")
	}
	w.files[file] = []byte(text.String())
}

package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/base/yamltext"
)

// problem is one thing that is wrong with a file: what it is and what would be
// right, on one line. Its pos is zero if the cause is not in the file.
type problem struct {
	pos     Pos
	message string
}

// report collects problems.
type report struct{ problems []problem }

func (r *report) at(p place, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if p.override != "" {
		message = p.override + ": " + message
	}
	message = strings.Join(strings.Fields(message), " ") // on one line
	r.problems = append(r.problems, problem{p.pos, message})
}

// err returns an error with a line file:line:column: message for each problem, once,
// in the order of the file; nil if there is none.
func (r *report) err(file string) error {
	slices.SortStableFunc(r.problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.pos.Line, b.pos.Line), cmp.Compare(a.pos.Column, b.pos.Column))
	})
	var errs []error
	for _, p := range slices.Compact(r.problems) {
		where := fmt.Sprintf("%s:%d:%d", file, p.pos.Line, p.pos.Column)
		if p.pos == (Pos{}) {
			where = file
		}
		errs = append(errs, errors.New(where+": "+p.message))
	}
	return errors.Join(errs...)
}

// place is where a value comes from; the zero place if there is no value.
type place struct {
	pos      Pos
	key      string // of the value, as in lease
	override string // what replaced the file's value, as in --set elector.lease=1s
}

func (p place) there() bool { return p != place{} }

func placeOf(n ast.Node) place {
	p := place{pos: position(n.GetToken())}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		p.pos = position(m.Values[0].Key.GetToken()) // not the colon behind it
	}
	if path := n.GetPath(); path != "$" {
		p.key = path[strings.LastIndex(path, ".")+1:]
	}
	return p
}

func position(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{1, 1}
	}
	return Pos{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// decode reads a text into keys, which is a pointer to a struct. What is not in
// the format is reported; all that it says is for the builder to check.
func (r *report) decode(text []byte, keys *fileKeys) {
	start := place{pos: Pos{1, 1}}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors put it there
	file, err := yamltext.Parse(text)
	switch {
	case errors.Is(err, yamltext.ErrBounds):
		r.at(start, "this is no scenario: %s", err)
		return
	case err != nil:
		r.library(start, err)
		return
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		r.at(start, "the file is empty: a scenario begins with \"name:\"")
		return
	}
	body := file.Docs[0].Body
	foreign := false
	if ast.Walk(plain{r, &foreign}, body); foreign {
		return // what is wrong with the rest follows from that
	}
	if len(file.Docs) > 1 && file.Docs[1].Start != nil {
		second := place{pos: position(file.Docs[1].Start)}
		r.at(second, "a second document: one file is one scenario")
	}
	var root mapping[fileKeys]
	root.decode(r, body)
	*keys = root.keys
}

// library reports an error of the YAML library at the place that the error names.
func (r *report) library(otherwise place, err error) {
	at, text := otherwise, err.Error()
	var found yaml.Error
	if errors.As(err, &found) && found.GetToken() != nil {
		at, text = place{pos: position(found.GetToken())}, found.GetMessage()
	}
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		text = "not YAML: " + text
	}
	r.at(at, "%s", text)
}

// plain reports the parts of YAML that the format does not have: people read scenarios, so
// there is one way to write a thing.
type plain struct {
	*report
	foreign *bool // something was met that the rest cannot be read without
}

func (p plain) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode, *ast.MappingKeyNode,
		*ast.DirectiveNode:
		p.at(placeOf(n), "anchors, aliases, tags, directives and the like are no part of the format: "+
			"write plain values, lists and mappings")
		*p.foreign = true
		return nil
	case *ast.MappingValueNode:
		inNodes := strings.HasPrefix(n.Value.GetPath(), "$.nodes.")
		if n.Value.Type() == ast.NullType && !inNodes {
			key := n.Key.GetToken()
			p.at(place{pos: position(key)}, "%q has no value: give one or leave the key out", key.Value)
		}
	case *ast.SequenceNode:
		if len(n.Values) == 0 {
			p.at(placeOf(n), "%s is an empty list: give an entry or leave the key out", placeOf(n).key)
		}
		for _, item := range n.Values {
			if item.Type() == ast.NullType {
				p.at(placeOf(item), "an entry without a value: give one or leave it out")
			}
		}
	}
	return p
}

// value is a part of the format that reads itself from its node.
type value interface{ decode(*report, ast.Node) }

// fill reads a value or a list of them; what has no value stays as it is.
func (r *report) fill(field reflect.Value, n ast.Node) {
	if n.Type() == ast.NullType {
		return
	}
	if v, ok := field.Addr().Interface().(value); ok {
		v.decode(r, n)
		return
	}
	items, ok := n.(*ast.SequenceNode)
	if !ok {
		r.at(placeOf(n), "%s is a list, this is %s", placeOf(n).key, describe(n))
		return
	}
	field.Set(reflect.MakeSlice(field.Type(), len(items.Values), len(items.Values)))
	for i, item := range items.Values {
		r.fill(field.Index(i), item)
	}
}

// describe says what a node is, for messages.
func describe(n ast.Node) string {
	switch n.(type) {
	case ast.MapNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// scalar is a single value as the file writes it; the builder parses it.
type scalar struct {
	place
	text string
}

func (s *scalar) decode(r *report, n ast.Node) { *s = r.scalar(n) }

func (r *report) scalar(n ast.Node) scalar {
	s := scalar{place: placeOf(n)}
	switch n := n.(type) {
	case *ast.StringNode:
		s.text = n.Value
	case *ast.LiteralNode:
		s.text = strings.TrimSpace(n.Value.Value)
	case ast.ScalarNode:
		s.text = n.GetToken().Value
	default:
		m, ok := n.(ast.MapNode)
		if ok && slices.Contains(asMappings, s.key) {
			s.text, ok = yamltext.Inline(m)
		} else {
			ok = false
		}
		if !ok {
			r.at(s.place, "%s is a single value, this is %s", s.key, describe(n))
		}
	}
	return s
}

// names is a list of names of nodes or links, or a single one.
type names struct {
	place
	items []scalar
	word  string // of a single one
}

func (l *names) decode(r *report, n ast.Node) {
	l.place = placeOf(n)
	items, isList := n.(*ast.SequenceNode)
	if !isList {
		items = &ast.SequenceNode{Values: []ast.Node{n}}
	}
	for _, item := range items.Values {
		if _, ok := item.(ast.ScalarNode); !ok {
			r.at(placeOf(item), "a node or link is given by its name, this is %s", describe(item))
			continue
		}
		l.items = append(l.items, r.scalar(item))
	}
	if !isList && len(l.items) == 1 {
		l.word = l.items[0].text
	}
}

// mapping is a mapping whose keys are the fields of the struct T.
type mapping[T any] struct {
	place
	keys T
}

func (m *mapping[T]) decode(r *report, n ast.Node) {
	m.place = placeOf(n)
	entries, ok := n.(ast.MapNode)
	if !ok {
		r.at(m.place, "%s is a mapping of keys to values, this is %s",
			cmp.Or(m.key, "a scenario"), describe(n))
		return
	}
	known, fields, list := keyNames[T](), map[string]reflect.Value{}, ""
	eachKey(&m.keys, func(name string, field reflect.Value) { fields[name] = field })
	for it := entries.MapRange(); it.Next(); {
		key := it.Key().GetToken()
		if field, ok := fields[key.Value]; ok {
			r.fill(field, it.Value())
			continue
		}
		hint := suggest(key.Value, known)
		switch {
		case hint == list:
			hint = "it is not in that list either" // of another kind of file all keys are unknown
		case strings.HasPrefix(hint, "there"):
			list = hint
		}
		r.at(place{pos: position(key)}, "unknown key %q: %s", key.Value, hint)
	}
}

// eachKey calls f for the keys that a struct, which is pointed to, is decoded from, in its order.
func eachKey(keys any, f func(name string, field reflect.Value)) {
	v := reflect.ValueOf(keys).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("yaml")
		if tag == ",inline" {
			eachKey(v.Field(i).Addr().Interface(), f)
		} else {
			f(cmp.Or(tag, strings.ToLower(v.Type().Field(i).Name)), v.Field(i))
		}
	}
}

// keyNames are the keys that a struct is decoded from.
func keyNames[T any]() (known []string) {
	eachKey(new(T), func(name string, _ reflect.Value) { known = append(known, name) })
	return known
}

// fieldsOf returns the fields of type F of a struct, which is pointed to, by key.
func fieldsOf[F any](keys any) map[string]*F {
	found := map[string]*F{}
	eachKey(keys, func(name string, field reflect.Value) {
		if f, ok := field.Addr().Interface().(*F); ok {
			found[name] = f
		}
	})
	return found
}

// given returns those of these keys that have a value, in the order of the struct.
func given(keys any, of []string) (found []string) {
	eachKey(keys, func(name string, field reflect.Value) {
		if slices.Contains(of, name) && !field.IsZero() {
			found = append(found, name)
		}
	})
	return found
}

// one returns the only one of these keys that has a value. It reports none, and
// several; who says of what, as in "a step does".
func (r *report) one(keys any, of []string, at place, who string) (key string, ok bool) {
	switch found := given(keys, of); len(found) {
	case 0:
		r.at(at, "%s nothing: add one of %s", who, strings.Join(of, ", "))
	case 1:
		return found[0], true
	default:
		r.at(at, "%s one thing, this one has %s: make it %d",
			who, strings.Join(found, " and "), len(found))
	}
	return "", false
}

// suggest ends a message about an unknown name: the name that was meant, if one is near, and
// otherwise all that there are.
func suggest(name string, known []string) string {
	if near := words.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 1 {
		return "there is only " + known[0]
	}
	return "there are " + strings.Join(known, ", ")
}

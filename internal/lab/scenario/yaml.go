package scenario

import (
	"bytes"
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/bmqelect/bmqelect/internal/base/yamltext"
)

// converter turns YAML into values and reports what the format leaves out of
// YAML: a scenario is read by people, so there is one way to write a thing.
type converter struct {
	*report
	foreign bool // something of YAML was met that the format leaves out
}

// parse returns the file's mapping, or nil if it has none that can be read.
func (c *converter) parse(text []byte) *value {
	start := &value{pos: Pos{1, 1}}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors put it there
	file, err := yamltext.Parse(text, parser.AllowDuplicateMapKey())
	switch {
	case errors.Is(err, yamltext.ErrBounds):
		c.at(start, "this is no scenario: %s", err)
		return nil
	case err != nil:
		c.syntax(start, err)
		return nil
	}
	root := c.document(start, file)
	if c.foreign {
		return nil // what is wrong with the rest follows from that
	}
	return root
}

func (c *converter) syntax(start *value, err error) {
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		c.at(&value{pos: position(ye.GetToken())}, "not YAML: %s", oneLine(ye.GetMessage()))
		return
	}
	c.at(start, "not YAML: %s", oneLine(err.Error()))
}

func (c *converter) document(start *value, file *ast.File) *value {
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		c.at(start, "the file is empty: a scenario begins with \"name:\"")
		return nil
	}
	root := c.convert(file.Docs[0].Body)
	if len(file.Docs) > 1 && file.Docs[1].Start != nil && !c.foreign {
		c.at(&value{pos: position(file.Docs[1].Start)}, "a second document: one file is one scenario")
	}
	return root
}

func (c *converter) convert(n ast.Node) *value {
	v := &value{pos: position(n.GetToken())}
	switch n := n.(type) {
	case *ast.NullNode:
		v.kind = null
	case *ast.SequenceNode:
		v.kind = list
		for _, item := range n.Values {
			v.items = append(v.items, c.convert(item))
		}
	case *ast.MappingNode:
		c.mapping(v, n.Values)
	case *ast.MappingValueNode:
		c.mapping(v, []*ast.MappingValueNode{n})
	case *ast.LiteralNode:
		v.text = strings.TrimSpace(n.Value.Value)
	case *ast.StringNode:
		v.text = n.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		v.text = n.GetToken().Value
	default:
		c.foreign = true
		c.at(v, "anchors, aliases, tags, directives and the like are no part of the format: write plain values, lists and mappings")
	}
	return v
}

func (c *converter) mapping(v *value, entries []*ast.MappingValueNode) {
	v.kind = mapping
	firsts := map[string]*value{}
	for i, e := range entries {
		key := c.convert(e.Key)
		if i == 0 && v.pos.Column > key.pos.Column {
			v.pos = key.pos // a block mapping begins with its first key, not with the colon
		}
		if first := firsts[key.text]; first != nil {
			c.at(key, "%q is there twice, first on line %d: leave one out", key.text, first.pos.Line)
			continue
		}
		firsts[key.text] = key
		held := c.convert(e.Value)
		if held.kind == null {
			held.pos = key.pos
		}
		v.fields = append(v.fields, field{key, held})
	}
}

func position(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{1, 1}
	}
	return Pos{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// oneLine keeps the words of a message from elsewhere on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

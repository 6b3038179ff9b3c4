// Package yamltext parses the YAML texts that people write, within bounds: the parser
// is recursive, and takes minutes and gigabytes for absurd ones.
package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of a YAML text. Nobody writes more by hand.
const (
	MaxSize  = 1 << 20 // bytes
	maxDepth = 32      // lists and mappings within each other, in brackets or indented
)

// ErrBounds is the error for a text beyond the bounds.
var ErrBounds = fmt.Errorf("at most %d bytes and %d lists or mappings within each other are read",
	MaxSize, maxDepth)

// aboutTabs matches what the parser says of a tab in front of a line.
var aboutTabs = regexp.MustCompile("'\t' that cannot start|tab character")

// Parse parses a text. A text beyond the bounds is not given to the parser: the error
// is ErrBounds. All other errors are the parser's, except that one names a tab in front of a
// line: nobody sees it.
func Parse(text []byte, options ...parser.Option) (*ast.File, error) {
	if len(text) > MaxSize || tooDeep(text) {
		return nil, ErrBounds
	}
	file, err := parser.ParseBytes(text, 0, options...)
	var bad *yaml.SyntaxError
	if errors.As(err, &bad) && aboutTabs.MatchString(bad.Message) {
		bad.Message = fmt.Sprintf("line %d: tabs cannot indent YAML, use spaces", bad.Token.Position.Line)
	}
	return file, err
}

// Inline returns a mapping of single values on one line, "{key: value, key: value}"; ok is
// false if a value is a list or a mapping.
func Inline(m ast.MapNode) (text string, ok bool) {
	var fields []string
	for it := m.MapRange(); it.Next(); {
		value, single := it.Value().(ast.ScalarNode)
		if !single {
			return "", false
		}
		fields = append(fields, it.Key().GetToken().Value+": "+value.GetToken().Value)
	}
	return "{" + strings.Join(fields, ", ") + "}", true
}

// tooDeep counts what opens a list or mapping: brackets, dashes, question marks and
// deeper indentation. It counts them wherever they are: a text that has so many within
// quotes is refused too.
func tooDeep(text []byte) bool {
	brackets := 0
	var open []int // columns of the blocks that the line is within
	for line := range bytes.Lines(text) {
		content := bytes.TrimLeft(line, " \t\r\n")
		if len(content) == 0 || content[0] == '#' {
			continue
		}
		indent := len(line) - len(content)
		for len(open) > 0 && open[len(open)-1] >= indent {
			open = open[:len(open)-1]
		}
		for i, b := range content {
			next := content[i+1 : min(i+2, len(content))]
			entry := (b == '-' || b == '?') && bytes.ContainsAny(next, " \t\r\n")
			if i == 0 || entry {
				open = append(open, indent+i)
			}
			switch b {
			case '[', '{':
				brackets++
			case ']', '}':
				brackets = max(brackets-1, 0)
			}
			if max(brackets, len(open)) > maxDepth {
				return true
			}
		}
	}
	return false
}

// Package yamltext parses the YAML texts that people write, within bounds: the parser
// is recursive, and takes minutes and gigabytes for absurd ones.
package yamltext

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of a YAML text. Nobody writes more by hand.
const (
	MaxSize  = 1 << 20 // bytes
	maxDepth = 32      // lists and mappings within each other, in brackets
)

// ErrBounds is the error for a text beyond the bounds.
var ErrBounds = fmt.Errorf("at most %d bytes and %d brackets within each other are read", MaxSize,
	maxDepth)

// Parse parses a text. A text beyond the bounds is not given to the parser: the error
// is ErrBounds. All other errors are the parser's.
func Parse(text []byte, options ...parser.Option) (*ast.File, error) {
	if len(text) > MaxSize || tooDeep(text) {
		return nil, ErrBounds
	}
	return parser.ParseBytes(text, 0, options...)
}

// tooDeep counts brackets wherever they are: a text that has so many within quotes is
// refused too.
func tooDeep(text []byte) bool {
	depth := 0
	for _, b := range text {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxDepth {
			return true
		}
	}
	return false
}

package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/base/yamltext"
)

// UnreadError is the error if nothing of a file could be read.
type UnreadError struct{ error }

// ApplyFile sets every flag that a YAML file names, unless the flag was given. The keys of the file
// are the names of the flags, and ApplyFile parses each value as the flag does. So there is one
// list of options, with one set of defaults and checks, and a value such as 0600 or 1.0 keeps its
// text. The error is a UsageError with a line for every mistake.
func ApplyFile(path string, flags *pflag.FlagSet) error {
	file, err := parseFile(path)
	if err != nil {
		return Usage(UnreadError{err})
	}
	var errs []error
	wrong := func(at ast.Node, err error) {
		p := at.GetToken().Position
		errs = append(errs, fmt.Errorf("%s:%d:%d: %w", path, p.Line, p.Column, err))
	}
	known := flagNames(flags, "config", "check", "help")
	documents := 0
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue // an empty file
		}
		options, ok := doc.Body.(ast.MapNode)
		if !ok {
			wrong(doc.Body, errors.New("must be lines of the form 'option: value'"))
			continue
		}
		if documents++; documents > 1 {
			wrong(doc.Body, errors.New("a second document: one file is one node"))
			break // an option in both would have the value of the first
		}
		for option := options.MapRange(); option.Next(); {
			name := option.Key().GetToken().Value
			flag := flags.Lookup(name)
			if !slices.Contains(known, name) {
				hint := "the options are the flags that --help lists, without dashes"
				if near := words.Nearest(name, known); near != "" {
					hint = "did you mean " + near + "?"
				}
				wrong(option.Key(), fmt.Errorf("there is no option %q; %s", name, hint))
				continue
			}
			if flag.Changed {
				continue
			}
			value, err := optionText(option.Value(), examples[name] != "")
			if err != nil {
				wrong(option.Value(), fmt.Errorf("option %q %w", name, err))
			} else if err := flags.Set(name, value); err != nil {
				want := cmp.Or(wanted[flag.Value.Type()], "a "+flag.Value.Type())
				if example := examples[name]; example != "" {
					want = fmt.Sprintf("fields such as {%s}: %v", example, errors.Unwrap(err))
				}
				wrong(option.Value(), fmt.Errorf("option %q is %q, but must be %s", name, value, want))
			}
		}
	}
	return Usage(errors.Join(errs...))
}

func parseFile(path string) (*ast.File, error) {
	text, err := limit.ReadFile(path, yamltext.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	file, err := yamltext.Parse(text)
	var bad *yaml.SyntaxError
	switch {
	case errors.As(err, &bad): // without the lines around it
		at := bad.Token.Position
		return nil, fmt.Errorf("%s:%d:%d: %s", path, at.Line, at.Column, bad.Message)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// Meant says in the error for an unknown flag which one may be meant, and in the error for a value
// what it must be.
func Meant(err error, flags *pflag.FlagSet) error {
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) && wanted[bad.GetFlag().Value.Type()] != "" {
		return fmt.Errorf("--%s is %q, but must be %s", bad.GetFlag().Name, bad.GetValue(),
			wanted[bad.GetFlag().Value.Type()])
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if near := words.Nearest(unknown.GetSpecifiedName(), flagNames(flags)); near != "" {
			return fmt.Errorf("%w (did you mean --%s?)", err, near)
		}
	}
	return err
}

// flagNames are the names of all flags, without some.
func flagNames(flags *pflag.FlagSet, not ...string) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(not, f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}

// wanted says what a value must be, by the type of its flag.
var wanted = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number",
	"uint64": "a whole number below 2^64", "duration": "a duration such as 1500ms or 2s",
}

// examples are of the options whose values may be mappings.
var examples = map[string]string{"qos": detector.ExampleQoS, "phi": detector.ExamplePhi}

// optionText is the text that one would type after the flag.
func optionText(v ast.Node, mayBeMapping bool) (string, error) {
	if m, ok := v.(ast.MapNode); ok && mayBeMapping {
		if text, ok := yamltext.Inline(m); ok {
			return text, nil
		}
	}
	switch v := v.(type) {
	case *ast.SequenceNode:
		var items []string
		for _, item := range v.Values {
			text, err := optionText(item, mayBeMapping)
			if err != nil {
				return "", err
			}
			items = append(items, text)
		}
		return strings.Join(items, ","), nil
	case *ast.NullNode, *ast.MappingNode, *ast.MappingValueNode:
		return "", errors.New("must be a value or a list of values")
	}
	return v.GetToken().Value, nil
}

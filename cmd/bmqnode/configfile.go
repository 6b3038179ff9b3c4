package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/internal/base/regular"
	"github.com/bmqelect/bmqelect/internal/base/yamltext"
)

// applyFile sets every flag that the file names and the command line does not:
// flags win. The file's keys are the flags' names, so that there is one list of
// options, with one set of defaults and checks.
func applyFile(path string, flags *pflag.FlagSet) error {
	text, err := regular.Read(path, yamltext.MaxSize)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	file, err := yamltext.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var errs []error
	for _, doc := range file.Docs {
		options, err := mapping(doc.Body)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		for _, option := range options {
			if err := applyOption(option, flags); err != nil {
				errs = append(errs, fmt.Errorf("%s:%d: %w", path, option.Key.GetToken().Position.Line, err))
			}
		}
	}
	return errors.Join(errs...)
}

func mapping(body ast.Node) ([]*ast.MappingValueNode, error) {
	switch body := body.(type) {
	case nil:
		return nil, nil // an empty file
	case *ast.MappingNode:
		return body.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{body}, nil
	}
	return nil, fmt.Errorf("line %d: must be lines of the form 'option: value'", body.GetToken().Position.Line)
}

func applyOption(option *ast.MappingValueNode, flags *pflag.FlagSet) error {
	name := option.Key.GetToken().Value
	flag := flags.Lookup(name)
	if flag == nil || name == "config" || name == "check" || name == "help" {
		return fmt.Errorf("there is no option %q; the options are those of 'bmqnode run --help', without dashes", name)
	}
	if flag.Changed {
		return nil
	}
	value, err := optionText(option.Value)
	if err == nil {
		err = flags.Set(name, value)
	}
	if err != nil {
		return fmt.Errorf("option %q: %w", name, err)
	}
	return nil
}

// optionText is the value as one would type it after the flag.
func optionText(v ast.Node) (string, error) {
	switch v := v.(type) {
	case *ast.SequenceNode:
		var items []string
		for _, item := range v.Values {
			text, err := optionText(item)
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

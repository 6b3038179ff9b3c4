package scenario

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bmqelect/bmqelect/internal/base/regular"
	"github.com/bmqelect/bmqelect/internal/base/yamltext"
)

// Load reads and checks a file, after set has replaced what it says. What is
// wrong with its content is a *FileError.
func Load(path string, set ...Override) (*Scenario, error) {
	text, err := regular.Read(path, yamltext.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("load scenario: %w", err)
	}
	return Parse(path, text, set...)
}

// Parse is Load for a text that is at hand; file is what errors call it. The
// error is a *FileError with all problems, not only the first, as far as reading
// could go on.
func Parse(file string, text []byte, set ...Override) (*Scenario, error) {
	b := &builder{report: &report{}, s: &Scenario{File: file}}
	if root := (&converter{report: b.report}).parse(text); root != nil {
		b.override(root, set)
		b.build(root)
	}
	if err := b.err(file); err != nil {
		return nil, err
	}
	return b.s, nil
}

// Find returns the scenario files that the paths name: files as they are,
// folders searched with all that is below them for *.yaml. The result is sorted,
// without repetitions. A folder without a scenario is an error.
func Find(paths ...string) ([]string, error) {
	var found []string
	for _, path := range paths {
		files, err := find(path)
		if err != nil {
			return nil, fmt.Errorf("find scenarios: %w", err)
		}
		found = append(found, files...)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func find(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{filepath.Clean(path)}, err
	}
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(name) == ".yaml" {
			files = append(files, name)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no file in %s has a name that ends in .yaml", path)
	}
	return files, err
}

package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const module = "github.com/bmqelect/bmqelect"

// goFile is one parsed Go file.
type goFile struct {
	path    string // from the top of the tree
	test    bool
	lines   int
	tokens  *token.FileSet
	syntax  *ast.File
	imports []string
}

func (f goFile) dir() string { return path.Dir(f.path) }

// repository is the tree that this test is part of.
func repository() fs.FS { return os.DirFS("../..") }

// tree makes a small tree out of path and content, for the checks' own tests.
func tree(files map[string]string) fs.FS {
	t := fstest.MapFS{}
	for name, content := range files {
		t[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return t
}

// paths returns the files that choose accepts, .ci included, all else that is
// hidden or built left out.
func paths(t *testing.T, root fs.FS, choose func(name string) bool) (chosen []string) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(entry.Name()):
			return fs.SkipDir
		case entry.Type().IsRegular() && choose(name):
			chosen = append(chosen, name)
		}
		return nil
	})
	require.NoError(t, err)
	return chosen
}

func skipped(dir string) bool {
	hidden := strings.HasPrefix(dir, ".") && dir != "." && dir != ".ci"
	return hidden || dir == "bin"
}

func isGo(name string) bool { return path.Ext(name) == ".go" }

// goFiles parses every Go file of the tree, whatever system it is for.
func goFiles(t *testing.T, root fs.FS) (files []goFile) {
	t.Helper()
	for _, name := range paths(t, root, isGo) {
		source, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		files = append(files, parse(t, name, source))
	}
	return files
}

func parse(t *testing.T, name string, source []byte) goFile {
	t.Helper()
	f := goFile{path: name, test: strings.HasSuffix(name, "_test.go"), tokens: token.NewFileSet()}
	f.lines = strings.Count(string(source), "\n")
	var err error
	f.syntax, err = parser.ParseFile(f.tokens, name, source,
		parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		f.imports = append(f.imports, imported)
	}
	return f
}

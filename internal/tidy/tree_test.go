package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const module = "github.com/bmqelect/bmqelect"

// repo is a tree of files in memory.
type repo struct {
	texts []file   // every text file, the Go files too
	gos   []goFile // for every operating system
}

// file is a name, seen from the top of the tree, and a text.
type file struct{ path, text string }

// goFile is a parsed Go file.
type goFile struct {
	file
	test    bool
	tokens  *token.FileSet
	syntax  *ast.File
	imports []string
}

func (f goFile) dir() string { return path.Dir(f.path) }

// functions are the functions and methods that the file declares.
func (f goFile) functions() (all []*ast.FuncDecl) {
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			all = append(all, fn)
		}
	}
	return all
}

// repository is the tree that this test is part of.
func repository() fs.FS { return os.DirFS("../..") }

// tree makes a small tree, with the given contents by path.
func tree(files map[string]string) fs.FS {
	t := fstest.MapFS{}
	for name, content := range files {
		t[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return t
}

// read reads every text file of a tree, except those that are hidden or built.
func read(t *testing.T, root fs.FS) (r repo) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(entry.Name()):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !isText(name):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		f := file{name, string(text)}
		r.texts = append(r.texts, f)
		if path.Ext(name) == ".go" {
			r.gos = append(r.gos, parse(t, f))
		}
		return err
	})
	require.NoError(t, err)
	return r
}

func skipped(dir string) bool {
	hidden := strings.HasPrefix(dir, ".") && dir != "." && dir != ".ci"
	return hidden || dir == "bin"
}

func isText(name string) bool {
	known := []string{".go", ".md", ".txt", ".yml", ".yaml", ".json", ".sh", ".mod"}
	return slices.Contains(known, path.Ext(name)) || name == "Makefile" || name == ".ci/run"
}

func parse(t *testing.T, source file) goFile {
	t.Helper()
	f := goFile{file: source, tokens: token.NewFileSet()}
	f.test = strings.HasSuffix(f.path, "_test.go")
	var err error
	f.syntax, err = parser.ParseFile(f.tokens, f.path, f.text,
		parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, spec := range f.syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		f.imports = append(f.imports, imported)
	}
	return f
}

// text is the content of a file; "" if it does not exist.
func (r repo) text(name string) string {
	at := slices.IndexFunc(r.texts, func(f file) bool { return f.path == name })
	if at < 0 {
		return ""
	}
	return r.texts[at].text
}

func (r repo) has(name string) bool {
	return slices.ContainsFunc(r.texts, func(f file) bool { return f.path == name })
}

// files are the text files with one of the extensions.
func (r repo) files(extensions ...string) (chosen []file) {
	for _, f := range r.texts {
		if slices.Contains(extensions, path.Ext(f.path)) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

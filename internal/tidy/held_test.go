package tidy

import (
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write docs/rules.md anew")

const (
	rulesPage = "docs/rules.md"
	scripts   = "testdata/elector"
	byHand    = "testdata/mutants/protocol.txt"
)

// numbered is a rule of the protocol: its number, and what it is called.
var numbered = regexp.MustCompile(`(?m)^### (\d+\.\d+) (.*)`)

// holders are what holds a rule: it fails if the rule is broken.
type holders struct{ scripts, tests, mutants []string }

// TestEveryRuleIsHeld by a script, or a test, that cites it.
func TestEveryRuleIsHeld(t *testing.T) {
	held, broken := heldRules(t, repository())
	require.Empty(t, broken)
	want := rulesTable(t, repository(), held)
	if *rewrite {
		require.NoError(t, os.WriteFile("../../"+rulesPage, []byte(want), 0o644))
	}
	got, err := fs.ReadFile(repository(), rulesPage)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./internal/tidy -run RuleIsHeld -rewrite")
}

// heldRules returns what holds each rule, by what cites it, and a line for each rule that only
// mutants hold, or nothing, and for each mutant that names a scene or a rule that is not there.
func heldRules(t *testing.T, root fs.FS) (held map[string]*holders, broken []string) {
	t.Helper()
	text, err := fs.ReadFile(root, protocol)
	require.NoError(t, err)
	held = map[string]*holders{}
	for _, rule := range matches(numbered, text) {
		held[rule] = &holders{}
	}
	note := func(who, text string, add func(h *holders) *[]string) {
		for _, rule := range matches(citation, []byte(text)) {
			if h := held[rule]; h != nil {
				if list := add(h); !slices.Contains(*list, who) {
					*list = append(*list, who)
				}
			}
		}
	}
	err = fs.WalkDir(root, scripts, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".txt" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		who := strings.TrimSuffix(strings.TrimPrefix(name, scripts+"/"), ".txt")
		note(who, string(text), func(h *holders) *[]string { return &h.scripts })
		return err
	})
	require.NoError(t, err)
	for who, text := range testsOf(t, root) {
		note(who, text, func(h *holders) *[]string { return &h.tests })
	}
	for _, m := range mutantsByHand(t, root) {
		if !strings.Contains(m, "\nrules: \u00a7") {
			broken = append(broken, fmt.Sprintf("%s: names no rule: %s", byHand, name(m)))
		}
		note(name(m), m[:strings.Index(m, "\nfile: ")], func(h *holders) *[]string { return &h.mutants })
	}
	for _, rule := range matches(numbered, text) {
		h := held[rule]
		slices.Sort(h.tests)
		if len(h.scripts)+len(h.tests) == 0 {
			broken = append(broken, fmt.Sprintf("%s: no script and no test cites \u00a7%s", protocol, rule))
		}
	}
	return held, append(broken, missingScenes(t, root)...)
}

// testsOf returns the text of each test, with its comment, by its name.
func testsOf(t *testing.T, root fs.FS) map[string]string {
	t.Helper()
	tests := map[string]string{}
	for _, f := range goFiles(t, root) {
		if !f.test || path.Dir(f.path) == "internal/tidy" {
			continue
		}
		source, err := fs.ReadFile(root, f.path)
		require.NoError(t, err)
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !testName.MatchString(fn.Name.Name) {
				continue
			}
			first := fn.Pos()
			if fn.Doc != nil {
				first = fn.Doc.Pos()
			}
			at := f.tokens.Position
			tests[fn.Name.Name] += string(source[at(first).Offset:at(fn.End()).Offset])
		}
	}
	return tests
}

// mutantsByHand returns the paragraphs of the table of mutants; none if it is not there.
func mutantsByHand(t *testing.T, root fs.FS) []string {
	t.Helper()
	text, err := fs.ReadFile(root, byHand)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n\n")[1:]
}

// name is the first line.
func name(text string) string { return strings.SplitN(text, "\n", 2)[0] }

var (
	sceneOf  = regexp.MustCompile(`(?m)^scene: (.*)`)
	testOf   = regexp.MustCompile(`(?m)^test: (.*)`)
	sceneIs  = regexp.MustCompile(`with\("([^"]+)"`)
	scenesIn = "elector/search_scenes_test.go"
)

// missingScenes returns a line for each scene or test that the table of mutants names and that
// is not there.
func missingScenes(t *testing.T, root fs.FS) (broken []string) {
	t.Helper()
	source, err := fs.ReadFile(root, scenesIn)
	require.NoError(t, err)
	scenes, tests := matches(sceneIs, source), testsOf(t, root)
	for _, m := range mutantsByHand(t, root) {
		for _, scene := range matches(sceneOf, []byte(m)) {
			if !slices.Contains(scenes, scene) {
				broken = append(broken, fmt.Sprintf("%s: %s has no scene %q", byHand, scenesIn, scene))
			}
		}
		for _, test := range matches(testOf, []byte(m)) {
			if tests[test] == "" {
				broken = append(broken, fmt.Sprintf("%s: there is no %s", byHand, test))
			}
		}
	}
	return broken
}

// rulesTable is the page that shows what holds each rule.
func rulesTable(t *testing.T, root fs.FS, held map[string]*holders) string {
	t.Helper()
	text, err := fs.ReadFile(root, protocol)
	require.NoError(t, err)
	var page strings.Builder
	page.WriteString(`# What holds each rule

[Scripts](../testdata/elector/README.md) show a rule line by line. Tests and scripts are listed if
they cite the rule. [Mutants](../testdata/mutants/protocol.txt) break it on purpose, and the
exploration of the real machine finds each ([more](safety.md#what-the-tests-are-worth)). The tests
of [promises](safety.md) play all rules together.

` + "`go test ./internal/tidy -run RuleIsHeld -rewrite` writes this page." + `

| rule | scripts | tests | mutants |
| --- | --- | --- | --- |
`)
	for _, m := range numbered.FindAllSubmatch(text, -1) {
		h := held[string(m[1])]
		fmt.Fprintf(&page, "| %s %s | %s | %s | %s |\n", m[1], m[2], strings.Join(h.scripts, ", "),
			strings.Join(h.tests, ", "), strings.Join(h.mutants, "; "))
	}
	return page.String()
}

func TestRulesThatNothingHoldsAreNoticed(t *testing.T) {
	sign := "\u00a7"
	files := map[string]string{
		protocol:                 "### 2.1 Yes\n### 2.2 No\n### 2.3 Maybe\n### 2.4 Never\n",
		"testdata/elector/a.txt": "# Yes: " + sign + "2.1.",
		"a/a_test.go": "package a\n\n// No: " + sign + "2.2.\nfunc TestNo() {}\n\n" +
			"// " + sign + "2.3\nfunc x() {}",
		scenesIn: `package elector_test; var _ = with("one")`,
		byHand: "# Mutants\n\nbad\nrules: " + sign + "2.4\nscene: two\nfile: a\n\n" +
			"worse\ntest: TestX\nfile: a\n",
		"testdata/elector/no.yml": sign + "2.4",
	}
	held, broken := heldRules(t, tree(files))
	require.Equal(t, []string{
		byHand + ": names no rule: worse",
		protocol + ": no script and no test cites " + sign + "2.3",
		protocol + ": no script and no test cites " + sign + "2.4",
		byHand + ": " + scenesIn + ` has no scene "two"`,
		byHand + ": there is no TestX",
	}, broken)
	require.Equal(t, &holders{scripts: []string{"a"}}, held["2.1"])
	require.Equal(t, &holders{tests: []string{"TestNo"}}, held["2.2"])
	require.Equal(t, &holders{mutants: []string{"bad"}}, held["2.4"])
}

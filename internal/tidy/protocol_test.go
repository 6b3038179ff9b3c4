package tidy

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

var _ = flag.Bool("rewrite", false, "write docs/rules.md anew")

const (
	protocol  = "docs/protocol.md" // whose rules the code cites
	rulesPage = "docs/rules.md"
	scripts   = "testdata/elector/"
	scenesIn  = "elector/search_scenes_test.go"
	pairsIn   = "elector/pair/search_scenes_test.go" // scenes of pairs
	byHand    = "testdata/mutants/protocol.txt"
)

var (
	heading  = regexp.MustCompile(`(?m)^##+ (\d+(?:\.\d+)?) `)
	citation = regexp.MustCompile(`\x{a7}(\d*(?:\.\d+)?)`)
	// numbered is a rule of the protocol: its number, and what it is called.
	numbered = regexp.MustCompile(`(?m)^### (\d+\.\d+) (.*)`)
	sceneIs  = regexp.MustCompile(`(?:with\(|name: )"([^"]+)"`)
	sceneOf  = regexp.MustCompile(`(?m)^scene: (.*)`)
	testOf   = regexp.MustCompile(`(?m)^test: (.*)`)
)

// uncited returns each citation of a rule that the protocol does not have, and each rule (a
// section of a section) that no Go file outside tests cites.
func uncited(r repo) (broken []string) {
	cited := map[string]bool{} // by the code
	for _, rule := range matches(heading, r.text(protocol)) {
		if _, twice := cited[rule]; twice {
			broken = append(broken, fmt.Sprintf("%s: %s stands there twice", protocol, rule))
		}
		cited[rule] = !strings.Contains(rule, ".")
	}
	for _, f := range r.texts {
		for _, rule := range matches(citation, f.text) {
			if _, known := cited[rule]; !known {
				broken = append(broken, fmt.Sprintf("%s: %s has no \u00a7%s", f.path, protocol, rule))
			} else if path.Ext(f.path) == ".go" && !strings.HasSuffix(f.path, "_test.go") {
				cited[rule] = true
			}
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(cited)) {
		if !cited[rule] {
			broken = append(broken, fmt.Sprintf("%s: no code cites \u00a7%s", protocol, rule))
		}
	}
	return broken
}

// tests are the texts of all tests, with their comments, by their names.
func (r repo) tests() (all []file) {
	for _, f := range r.gos {
		for _, fn := range f.functions() {
			if !f.test || !testName.MatchString(fn.Name.Name) {
				continue
			}
			first := fn.Pos()
			if fn.Doc != nil {
				first = fn.Doc.Pos()
			}
			at := f.tokens.Position
			all = append(all, file{fn.Name.Name, f.text[at(first).Offset:at(fn.End()).Offset]})
		}
	}
	slices.SortStableFunc(all, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	return all
}

// scripts are the scripts of the elector, by their names.
func (r repo) scripts() (all []file) {
	for _, f := range r.texts {
		name, ok := strings.CutPrefix(f.path, scripts)
		if name, isScript := strings.CutSuffix(name, ".txt"); ok && isScript {
			all = append(all, file{name, f.text})
		}
	}
	return all
}

// mutants are the paragraphs of the hand-written mutants, keyed by first line.
func (r repo) mutants() (all []file) {
	for _, text := range strings.Split(strings.TrimSpace(r.text(byHand)), "\n\n")[1:] {
		name, _, _ := strings.Cut(text, "\n")
		head, _, _ := strings.Cut(text, "\nfile: ")
		all = append(all, file{name, head})
	}
	return all
}

// citing returns the names of the texts that cite each rule.
func citing(texts []file) map[string][]string {
	names := map[string][]string{}
	for _, f := range texts {
		for _, rule := range matches(citation, f.text) {
			if !slices.Contains(names[rule], f.path) {
				names[rule] = append(names[rule], f.path)
			}
		}
	}
	return names
}

// unheld returns each rule that no script and no test cites, and each mutant that names no
// rule, or a scene or test that does not exist.
func unheld(r repo) (broken []string) {
	inScripts, inTests := citing(r.scripts()), citing(r.tests())
	for _, rule := range matches(numbered, r.text(protocol)) {
		if len(inScripts[rule])+len(inTests[rule]) == 0 {
			broken = append(broken, fmt.Sprintf("%s: no script and no test cites \u00a7%s", protocol, rule))
		}
	}
	scenes := matches(sceneIs, r.text(scenesIn)+r.text(pairsIn))
	for _, m := range r.mutants() {
		if !strings.Contains(m.text, "\nrules: \u00a7") {
			broken = append(broken, fmt.Sprintf("%s: names no rule: %s", byHand, m.path))
		}
		for _, scene := range matches(sceneOf, m.text) {
			if !slices.Contains(scenes, scene) {
				broken = append(broken, fmt.Sprintf("%s: %s has no scene %q", byHand, scenesIn, scene))
			}
		}
		for _, test := range matches(testOf, m.text) {
			test, _, _ = strings.Cut(test, "/") // a test's own cases are its own to name
			if !slices.ContainsFunc(r.tests(), func(f file) bool { return f.path == test }) {
				broken = append(broken, fmt.Sprintf("%s: there is no %s", byHand, test))
			}
		}
	}
	return broken
}

// TestWhatEachRuleIsHeldBy compares the page that lists it with the tree.
func TestWhatEachRuleIsHeldBy(t *testing.T) {
	r := read(t, repository())
	var want strings.Builder
	want.WriteString(`# What holds each rule

[Scripts](../testdata/elector/README.md) show a rule line by line. Tests and scripts are listed if
they cite the rule. [Mutants](../testdata/mutants/protocol.txt) break it on purpose, and the
exploration of the real machine finds them, or the script or test that is named there
([more](safety.md#what-the-tests-are-worth)). The tests of [promises](safety.md) play all rules
together.

` + "`go test ./internal/tidy -run RuleIsHeld -rewrite` writes this page." + `

| rule | scripts | tests | mutants |
| --- | --- | --- | --- |
`)
	inScripts, inTests, inMutants := citing(r.scripts()), citing(r.tests()), citing(r.mutants())
	for _, m := range numbered.FindAllStringSubmatch(r.text(protocol), -1) {
		fmt.Fprintf(&want, "| %s %s | %s | %s | %s |\n", m[1], m[2], strings.Join(inScripts[m[1]], ", "),
			strings.Join(inTests[m[1]], ", "), strings.Join(inMutants[m[1]], "; "))
	}
	testkit.Golden(t, "../../"+rulesPage, want.String())
}

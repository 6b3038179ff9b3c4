package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// page is a reference to a Markdown file of the tree, or to a heading in it: no address of
	// the web, and nothing hidden.
	page = regexp.MustCompile(`(?:^|[^\w./:-])((?:\.\./)*\w[\w-]*(?:/\w[\w-]*)*\.md(?:#[\w-]+)?)\b`)
	// here is a link to a heading of the same page.
	here  = regexp.MustCompile(`\]\(#([\w-]+)\)`)
	title = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// noAnchor is what the anchor of a heading leaves out.
	noAnchor = regexp.MustCompile(`[^\pL\d _-]`)
	// testName is what tests, benchmarks and fuzz targets are called.
	testName = regexp.MustCompile(`\b((?:Test|Fuzz|Benchmark|Example)[A-Z]\w*)`)
	// target is a target of the Makefile, and helped one that `make` alone lists.
	target = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	helped = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):.*## \S`)
	// advice is a make command in a code span, or on a line of its own in a
	// code block; "make" in a sentence is neither.
	advice = regexp.MustCompile(
		"(?m)(?:`|^\\s*\\$? ?)make ([a-z][a-z0-9-]*)(?:`| [A-Z]|\\s*(?:#.*)?$)")
)

// matches returns the first group of each match.
func matches(pattern *regexp.Regexp, text string) (found []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// anchors are the names of a page's headings in links.
func anchors(page string) (all []string) {
	for _, h := range matches(title, page) {
		h = noAnchor.ReplaceAllString(strings.ToLower(h), "")
		all = append(all, strings.ReplaceAll(h, " ", "-"))
	}
	return all
}

// missingPages returns each reference of a document, or of the code, to a Markdown file or a
// heading that does not exist. In test files only comments count, because tests make files.
func missingPages(r repo) (broken []string) {
	look := func(name, text string) {
		for _, ref := range matches(page, text) {
			file, anchor, _ := strings.Cut(ref, "#")
			places := []string{file, path.Join(path.Dir(name), file), path.Join("docs", file)}
			at := slices.IndexFunc(places, r.has)
			if at < 0 || anchor != "" && !slices.Contains(anchors(r.text(places[at])), anchor) {
				broken = append(broken, fmt.Sprintf("%s: %s is not there", name, ref))
			}
		}
	}
	for _, f := range r.files(".md", ".yml") {
		look(f.path, f.text)
		for _, anchor := range matches(here, f.text) {
			look(f.path, path.Base(f.path)+"#"+anchor)
		}
	}
	for _, f := range r.gos {
		for _, comment := range f.syntax.Comments {
			look(f.path, comment.Text())
		}
		for n := range ast.Preorder(f.syntax) {
			if text, ok := n.(*ast.BasicLit); ok && !f.test {
				look(f.path, text.Value)
			}
		}
	}
	return broken
}

// missingTests returns each test that a document names and that no file declares.
func missingTests(r repo) (broken []string) {
	declared := map[string]bool{}
	for _, test := range r.tests() {
		declared[test.path] = true
	}
	for _, f := range r.files(".md") {
		for _, name := range matches(testName, f.text) {
			if !declared[name] {
				broken = append(broken, fmt.Sprintf("%s: there is no %s", f.path, name))
			}
		}
	}
	return broken
}

// missingTargets returns each target of the Makefile that a document names and that does not
// exist, and each that `make` alone would not list.
func missingTargets(r repo) (broken []string) {
	makefile := r.text("Makefile")
	targets := matches(target, makefile)
	for _, name := range targets {
		if !slices.Contains(matches(helped, makefile), name) {
			broken = append(broken, fmt.Sprintf("Makefile: %s has no ## help", name))
		}
	}
	for _, f := range r.files(".md") {
		for _, name := range matches(advice, f.text) {
			if !slices.Contains(targets, name) {
				broken = append(broken, fmt.Sprintf("%s: the Makefile has no target %s", f.path, name))
			}
		}
	}
	return broken
}

// Each promise of docs/safety.md ends with the tests that show it, in brackets.
func TestATestShowsEachPromise(t *testing.T) {
	promise := regexp.MustCompile(`(?m)^\d+\. (.*(?:\n   .*)*)`)
	shown := regexp.MustCompile(`\(([^()]*)\)$`)
	promises := matches(promise, read(t, repository()).text("docs/safety.md"))
	require.Greater(t, len(promises), 15)
	for _, text := range promises {
		require.Regexp(t, testName, shown.FindString(text), strings.TrimSpace(text))
	}
}

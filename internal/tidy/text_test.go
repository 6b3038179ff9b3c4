package tidy

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A stain is what a line must not contain. The patterns are written so that they do not match
// this file.
type stain struct {
	pattern *regexp.Regexp
	onlyGo  bool
	why     string
}

var stains = []stain{
	{regexp.MustCompile(`[^\x00-\x7f\x{a7}]`), true,
		"not ASCII; write \\u escapes, but the section sign for a rule of the protocol"},
	{regexp.MustCompile(`\b(TO[D]O|FIX[M]E)\b`), false, "unfinished; do it or leave it out"},
	{regexp.MustCompile(`(^|[^\w.])/(wor[k]|roo[t]|hom[e])/`), false, "a path of somebody's machine"},
}

// stained returns each line of a text that has a stain.
func stained(r repo) (broken []string) {
	for _, f := range r.texts {
		for i, line := range strings.Split(f.text, "\n") {
			for _, s := range stains {
				if (!s.onlyGo || path.Ext(f.path) == ".go") && s.pattern.MatchString(line) {
					broken = append(broken, fmt.Sprintf("%s:%d: %s: %s", f.path, i+1, s.why, line))
				}
			}
		}
	}
	return broken
}

const widest = 100 // characters of a line of code or text; a tab counts as one

// unbreakable matches what may make a line longer: a row of a table, a link, a command, a long
// string.
var unbreakable = regexp.MustCompile(`^\s*\|.*\||https?://|^    \S|"(\\.|[^"\\]){40,}"` +
	"|`[^`]{40,}")

// tooWide returns each line of Go or Markdown that is too long and could be broken.
func tooWide(r repo) (broken []string) {
	for _, f := range r.files(".go", ".md") {
		raw := false // within a raw string, or a block of code
		for i, line := range strings.Split(f.text, "\n") {
			began := raw
			raw = raw != (strings.Count(line, "`")%2 == 1)
			width := utf8.RuneCountInString(line)
			if width > widest && !began && !raw && !unbreakable.MatchString(line) {
				broken = append(broken, fmt.Sprintf("%s:%d: %d characters, limit %d", f.path, i+1,
					width, widest))
			}
		}
	}
	return broken
}

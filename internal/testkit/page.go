package testkit

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Page requires that every Go block of a page is named by a comment before it, as in
//
//	<!-- snippet: run -->
//
// and is, word for word, the code between "// snippet: run" and "// end" in one of the Go files
// that the patterns match; and that the page has all such code. Blocks whose language is written
// golang are not looked at: they show code of others.
func Page(t testing.TB, page string, patterns ...string) {
	t.Helper()
	made := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			snippets(readText(t, file), made)
		}
	}
	has := blocks(readText(t, page))
	require.ElementsMatch(t, slices.Collect(maps.Keys(made)), slices.Collect(maps.Keys(has)),
		"the blocks of %s, by the name in the comment before each", page)
	for name, code := range made {
		require.Equal(t, code, has[name], "%s in %s", name, page)
	}
}

func readText(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

var (
	snippet = regexp.MustCompile(`(?ms)^(\t*)// snippet: (\S+)\n(.*?)^\t*// end$`)
	block   = regexp.MustCompile("(?ms)(?:^<!-- snippet: (\\S+) -->\n)?^```go\n(.*?)^```$")
)

// snippets adds the marked code of a Go file, as gofmt would have it at the margin.
func snippets(text string, found map[string]string) {
	for _, m := range snippet.FindAllStringSubmatch(text, -1) {
		var lines []string
		for line := range strings.Lines(m[3]) {
			lines = append(lines, strings.TrimPrefix(line, m[1]))
		}
		found[m[2]] = strings.TrimSpace(strings.Join(lines, "")) + "\n"
	}
}

// blocks returns the Go blocks of a page; those without a name are under "".
func blocks(text string) map[string]string {
	found := map[string]string{}
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		found[m[1]] += m[2]
	}
	return found
}

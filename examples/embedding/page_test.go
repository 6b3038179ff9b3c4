package embedding

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs is the folder of the pages.
const docs = "../../docs/"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// snippets returns the pieces of Go text between "// snippet: name" and "// end", as
// gofmt would have them at the margin.
func snippets(text string) map[string]string {
	found := map[string]string{}
	for _, m := range regexp.MustCompile(
		`(?ms)^(\t*)// snippet: (\S+)\n(.*?)^\t*// end$`).FindAllStringSubmatch(text, -1) {
		var lines []string
		for line := range strings.Lines(m[3]) {
			lines = append(lines, strings.TrimPrefix(line, m[1]))
		}
		found[m[2]] = strings.TrimSpace(strings.Join(lines, "")) + "\n"
	}
	return found
}

// blocks returns the Go blocks of a page, by the name in the comment before each;
// those without a name are under "".
func blocks(text string) map[string]string {
	found := map[string]string{}
	for _, m := range regexp.MustCompile(
		"(?ms)(?:^<!-- snippet: (\\S+) -->\n)?^```go\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found[m[1]] += m[2]
	}
	return found
}

func TestThePageHasTheCodeThatIsTested(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	page := blocks(read(t, docs+"embedding.md"))
	require.NotContains(t, page, "", "every block of code is one that is tested")
	names := 0
	for _, file := range files {
		if file == "page_test.go" {
			continue
		}
		for name, code := range snippets(read(t, file)) {
			require.Equal(t, code, page[name], "snippet %s of %s", name, file)
			names++
		}
	}
	require.Len(t, page, names, "every block of the page is a snippet")
	require.Greater(t, names, 5)
}

package yamltext

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAbsurdTextsAreNotParsed(t *testing.T) {
	var stairs strings.Builder
	for depth := range maxDepth + 1 {
		stairs.WriteString(strings.Repeat(" ", depth) + "a:\n")
	}
	for _, text := range []string{
		"voters: " + strings.Repeat("[", 100_000), strings.Repeat("{a: ", maxDepth+1),
		strings.Repeat("#", MaxSize+1), strings.Repeat("- ", 100_000), strings.Repeat("? ", 100_000),
		"a: " + strings.Repeat("-\t", maxDepth+1), strings.Repeat("- !!a ", maxDepth+1), stairs.String(),
	} {
		_, err := Parse([]byte(text))
		require.Equal(t, ErrBounds, err)
	}
	file, err := Parse([]byte("voters: " + strings.Repeat("[", maxDepth) + "a" +
		strings.Repeat("]", maxDepth)))
	require.NoError(t, err)
	require.Len(t, file.Docs, 1)
	_, err = Parse([]byte(strings.Repeat("- a: 1\n  b: 2\n# - -\n", 2*maxDepth) +
		strings.Repeat("- ", maxDepth) + "a"))
	require.NoError(t, err)
	_, err = Parse([]byte("voters: [a"))
	require.ErrorContains(t, err, "[1:")
}

func TestATabThatIndentsIsNamed(t *testing.T) {
	for text, line := range map[string]string{
		"a: 1\n\tb: 2\n": "2", "a:\n\t- 1\n": "2", "a:\n  b: 1\n\tc: 2\n": "3", "\ta: 1\n": "1",
		"a:\n  - b: 1\n \t  c: 2\n": "3", "\t- a\n": "1", "a: |\n\tb\n": "2",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, "line "+line+": tabs cannot indent YAML, use spaces", "%q", text)
	}
	_, err := Parse([]byte("a:\t1\nb: \"\t\"\nc: [1,\n\t2]\n"))
	require.NoError(t, err, "a tab elsewhere does no harm")
}

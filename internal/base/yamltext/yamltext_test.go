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

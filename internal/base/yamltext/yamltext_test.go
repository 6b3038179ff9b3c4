package yamltext

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAbsurdTextsAreNotParsed(t *testing.T) {
	for _, text := range []string{
		"voters: " + strings.Repeat("[", 100_000), strings.Repeat("{a: ", maxDepth+1),
		strings.Repeat("#", MaxSize+1),
	} {
		_, err := Parse([]byte(text))
		require.Equal(t, ErrBounds, err)
	}
	file, err := Parse([]byte("voters: " + strings.Repeat("[", maxDepth) + "a" +
		strings.Repeat("]", maxDepth)))
	require.NoError(t, err)
	require.Len(t, file.Docs, 1)
	_, err = Parse([]byte("voters: [a"))
	require.ErrorContains(t, err, "[1:")
}

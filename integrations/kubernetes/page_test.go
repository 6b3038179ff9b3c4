package kubelock

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each line that the README adds to a controller is one of the example, which compiles.
func TestTheLinesOfTheReadmeAreThoseOfTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	squeeze := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	added := 0
	for line := range strings.Lines(string(readme)) {
		if line, found := strings.CutPrefix(line, "+"); found {
			require.Contains(t, squeeze(string(example)), squeeze(line))
			added++
		}
	}
	require.Equal(t, 5, added)
}

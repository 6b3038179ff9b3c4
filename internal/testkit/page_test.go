package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSnippetsAndBlocks(t *testing.T) {
	found := map[string]string{}
	snippets("x\n\t// snippet: a\n\tf()\n\n\t\tg()\n\t// end\ny\n// snippet: b\nh()\n\n// end\n", found)
	require.Equal(t, map[string]string{"a": "f()\n\n\tg()\n", "b": "h()\n"}, found)
	require.Equal(t, map[string]string{"a": "f()\n", "": "g()\n"}, blocks(
		"<!-- snippet: a -->\n```go\nf()\n```\n```golang\nold()\n```\n\n```go\ng()\n```\n"))
}

package testkit_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestItem(t *testing.T) {
	states := []string{"idle", "waiting", "serving"}
	for want, effects := range map[string][]string{
		"- **Tick**: *idle*: a; b. *waiting*: c. *serving*: d.\n": {"a; b", "c", "d"},
		"- **Tick**: *idle, serving*: a. *waiting*: b.\n":         {"a", "b", "a"},
		"- **Tick**: *waiting, serving*: a.\n":                    {"", "a", "a"},
		"- **Tick**: *always*: a.\n":                              {"a", "a", "a"},
		"- **Tick**:\n":                                           {"", "", ""},
	} {
		require.Equal(t, want, testkit.Item("Tick", states, effects))
	}
}

func TestWrap(t *testing.T) {
	long := strings.Repeat("x", testkit.Width)
	for text, want := range map[string]string{
		"a b":                    "a b\n",
		long[2:] + " b c":        long[2:] + " b\n  c\n",
		"a " + long + " c":       "a\n  " + long + "\n  c\n",
		long[3:] + " bcd ef":     long[3:] + "\n  bcd ef\n",
		"abc " + long[3:] + " d": "abc\n  " + long[3:] + "\n  d\n",
	} {
		require.Equal(t, want, testkit.Wrap(text, "  "))
	}
}

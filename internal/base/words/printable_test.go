package words_test

import (
	"math"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/words"
)

func TestWhatATerminalObeysIsShownAsAnEscape(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"plain 'text' \\ \u00e9": "plain 'text' \\ \u00e9",
		"a\x1b[2J\r\nb\x7f":      `a\x1b[2J\r\nb\x7f`,
		"\u009b31m\u202e":        `\u009b31m\u202e`,
		"\xffa":                  "\ufffda",
	} {
		require.Equal(t, want, words.Printable(text, math.MaxInt))
	}
}

func TestNoCharacterAndNoEscapeIsCutInTwo(t *testing.T) {
	const text, whole = "a\n\u00e9\u20ac\x00", "a\\n\u00e9\u20ac\\x00"
	for most := range len(whole) + 2 {
		got := words.Printable(text, most)
		require.LessOrEqual(t, len(got), most)
		require.Equal(t, whole[:len(got)], got)
		require.Contains(t, []int{0, 1, 3, 5, 8, 12}, len(got))
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("line\nbreak \x1b[31m", 9)
	f.Fuzz(func(t *testing.T, text string, most int) {
		got := words.Printable(text, most)
		require.LessOrEqual(t, len(got), max(most, 0))
		for _, r := range got {
			require.True(t, unicode.IsPrint(r), "%q", got)
		}
	})
}

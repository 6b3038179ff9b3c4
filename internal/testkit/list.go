package testkit

import (
	"slices"
	"strings"
)

// Width is how many characters a line has at most, unless a word is longer.
const Width = 100

// Item returns a list entry that says what an input does in each state. It names states with the
// same effect together, as "always" if these are all states, and omits states with the effect "".
func Item(input string, states, effects []string) string {
	text := "- **" + input + "**:"
	for i, effect := range effects {
		if effect == "" || slices.Index(effects, effect) < i {
			continue
		}
		var same []string
		for j, state := range states {
			if effects[j] == effect {
				same = append(same, state)
			}
		}
		if len(same) == len(states) {
			same = []string{"always"}
		}
		text += " *" + strings.Join(same, ", ") + "*: " + effect + "."
	}
	return Wrap(text, "  ")
}

// Wrap breaks text between words into lines. All except the first are indented.
func Wrap(text, indent string) string {
	var b strings.Builder
	width := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case b.Len() == 0:
		case width+1+len(word) > Width:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String() + "\n"
}

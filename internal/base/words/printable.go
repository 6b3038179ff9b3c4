// Package words makes foreign text safe for terminals and logs, and finds the known name
// nearest to a mistyped one.
package words

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable returns text with what a terminal obeys, or does not show, as escapes of Go: control
// characters, line breaks among them, and marks that turn the direction of text. It has at
// most the given number of bytes; the rest is cut off.
func Printable(text string, most int) string {
	var b strings.Builder
	for _, r := range text {
		shown := string(r)
		if !unicode.IsPrint(r) {
			shown = strings.Trim(strconv.QuoteRune(r), "'")
		}
		if b.Len()+len(shown) > most {
			break
		}
		b.WriteString(shown)
	}
	return b.String()
}

// List writes names with commas between them.
func List[T ~string](names []T) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = string(name)
	}
	return strings.Join(all, ", ")
}

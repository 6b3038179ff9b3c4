// Package printable makes text that may be a stranger's fit for terminals and logs.
package printable

import (
	"strconv"
	"strings"
	"unicode"
)

// Text returns text with what a terminal obeys, or does not show, as escapes of Go: control
// characters, line breaks among them, and marks that turn the direction of text. It has at
// most the given number of bytes; the rest is cut off.
func Text(text string, most int) string {
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

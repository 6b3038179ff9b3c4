package admin

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// decode reads a JSON value of a server, which may be a stranger's, into out. Its texts
// end up on terminals: they are made printable here, all of them in one place.
func decode(r io.Reader, out any) error {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return err
	}
	text, err := json.Marshal(withPrintable(value))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// withPrintable returns a JSON value with all its texts printable.
func withPrintable(value any) any {
	switch v := value.(type) {
	case string:
		return printable(v)
	case []any:
		for i := range v {
			v[i] = withPrintable(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, of := range v {
			clean[printable(name)] = withPrintable(of)
		}
		return clean
	}
	return value
}

// printable returns text with what a terminal obeys, or does not show, as escapes of Go:
// control characters, line breaks among them, and marks that turn the direction of text.
func printable(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, string(unicode.ReplacementChar)) {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

package lsn_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

func TestParseReadsWhatStringWrites(t *testing.T) {
	for text, want := range map[string]lsn.LSN{
		"0.0":  {},
		"5.2":  {Term: 5, Counter: 2},
		"10.0": {Term: 10},
		"9223372036854775807.18446744073709551615": {Term: lsn.MaxTerm, Counter: 1<<64 - 1},
	} {
		got, err := lsn.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
}

func TestParseRefusesAllElse(t *testing.T) {
	for text, why := range map[string]string{
		"":                       "no dot",
		"5":                      "no dot",
		".":                      "term: no digits",
		".2":                     "term: no digits",
		"5.":                     "counter: no digits",
		"5.2.1":                  "counter: not a decimal number",
		"+5.2":                   "term: not a decimal number",
		"5.-2":                   "counter: not a decimal number",
		"5. 2":                   "counter: not a decimal number",
		" 5.2":                   "term: not a decimal number",
		"5.2\n":                  "counter: not a decimal number",
		"1_0.2":                  "term: not a decimal number",
		"1+0.2":                  "term: not a decimal number",
		"0x5.2":                  "term: not a decimal number",
		"5.2e1":                  "counter: not a decimal number",
		"\u0665.2":               "term: not a decimal number", // an Arabic 5
		"05.2":                   "term: leading zero",
		"5.00":                   "counter: leading zero",
		"9223372036854775808.1":  "above the highest, 9223372036854775807",
		"18446744073709551616.1": "term: above 18446744073709551615",
		"5.18446744073709551616": "counter: above 18446744073709551615",
	} {
		got, err := lsn.Parse(text)
		require.ErrorContains(t, err, why, "%q", text)
		require.Zero(t, got, "%q", text)
	}
}

// TestParseErrorsQuoteTheInput: 64 bytes at most, and nothing that a terminal would obey.
func TestParseErrorsQuoteTheInput(t *testing.T) {
	long := strings.Repeat("x", 64)
	for text, want := range map[string]string{
		"5.2\x1b[2J": `lsn: "5.2\x1b[2J": counter: not a decimal number`,
		"05":         `lsn: "05": no dot; want term.counter, such as 5.2`,
		long:         `lsn: "` + long + `": no dot; want term.counter, such as 5.2`,
		long + "x":   `lsn: "` + long + `"...: no dot; want term.counter, such as 5.2`,
	} {
		_, err := lsn.Parse(text)
		require.EqualError(t, err, want)
	}
}

func TestParseTerm(t *testing.T) {
	for text, want := range map[string]lsn.Term{"0": 0, "7": 7, "9223372036854775807": lsn.MaxTerm} {
		got, err := lsn.ParseTerm(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for text, why := range map[string]string{
		"":                     `term "": no digits`,
		"-1":                   `term "-1": not a decimal number`,
		"01":                   `term "01": leading zero`,
		"9223372036854775808":  "above the highest",
		"18446744073709551616": "above 18446744073709551615",
	} {
		got, err := lsn.ParseTerm(text)
		require.ErrorContains(t, err, why, "%q", text)
		require.Zero(t, got, "%q", text)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"5.2", "0.0", "05.2", "5.+2", "9223372036854775808.1",
		"5.18446744073709551616"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := lsn.Parse(text)
		if err != nil {
			require.Zero(t, l)
			return
		}
		require.True(t, l.Term.Valid())
		require.Equal(t, text, l.String(), "two texts for one LSN")
	})
}

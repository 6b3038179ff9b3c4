package lsn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// binarySize is the length of an LSN in its binary form, in bytes.
const binarySize = 16

// longestText is the length of the longest LSN text: 19 digits, dot, 20 digits.
const longestText = 40

// String returns l as "term.counter", such as "5.2".
func (l LSN) String() string {
	return string(l.write(make([]byte, 0, longestText)))
}

func (l LSN) write(b []byte) []byte {
	b = strconv.AppendUint(b, uint64(l.Term), 10)
	b = append(b, '.')
	return strconv.AppendUint(b, l.Counter, 10)
}

// AppendText appends the text of l to b, as encoding.TextAppender. It refuses a
// term above MaxTerm, which could not be read back.
func (l LSN) AppendText(b []byte) ([]byte, error) {
	if err := checkTerm(l.Term); err != nil {
		return b, fmt.Errorf("lsn: write as text: %w", err)
	}
	return l.write(b), nil
}

// MarshalText returns the text of l, as encoding.TextMarshaler. So JSON
// holds a string, since a number of 64 bits is not safe in JavaScript. It
// refuses a term above MaxTerm.
func (l LSN) MarshalText() ([]byte, error) { return l.AppendText(nil) }

// UnmarshalText reads what MarshalText writes, by the rules of Parse. It leaves
// l as it was on error.
func (l *LSN) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*l = parsed
	}
	return err
}

// AppendBinary appends 16 bytes to b, as encoding.BinaryAppender: term, then
// counter, both big endian, so that the order of the bytes is that of the
// LSNs. It refuses a term above MaxTerm.
func (l LSN) AppendBinary(b []byte) ([]byte, error) {
	if err := checkTerm(l.Term); err != nil {
		return b, fmt.Errorf("lsn: write as bytes: %w", err)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(l.Term))
	return binary.BigEndian.AppendUint64(b, l.Counter), nil
}

// MarshalBinary returns the 16 bytes of AppendBinary, as
// encoding.BinaryMarshaler; so msgpack holds a byte string.
func (l LSN) MarshalBinary() ([]byte, error) {
	return l.AppendBinary(make([]byte, 0, binarySize))
}

// UnmarshalBinary reads what MarshalBinary writes. It refuses any other length
// and a term above MaxTerm, and leaves l as it was on error.
func (l *LSN) UnmarshalBinary(b []byte) error {
	if len(b) != binarySize {
		return fmt.Errorf("lsn: read from bytes: got %d bytes, want %d", len(b), binarySize)
	}
	term := Term(binary.BigEndian.Uint64(b))
	if err := checkTerm(term); err != nil {
		return fmt.Errorf("lsn: read from bytes: %w", err)
	}
	*l = LSN{Term: term, Counter: binary.BigEndian.Uint64(b[8:])}
	return nil
}

// ParseTerm reads a term in decimal, 0 to MaxTerm, in the one form that String
// writes: no sign, space or leading zero. Errors quote the input.
func ParseTerm(s string) (Term, error) {
	t, err := parseTerm(s)
	if err != nil {
		return 0, fmt.Errorf("lsn: term %s: %w", quote(s), err)
	}
	return t, nil
}

// Parse reads an LSN such as "5.2" in the one form that String writes: term,
// dot, counter, both decimal without sign, space or leading zero. The term is at
// most MaxTerm, the counter at most 2^64-1. Errors quote the input.
func Parse(s string) (LSN, error) {
	term, counter, found := strings.Cut(s, ".")
	if !found {
		return LSN{}, fmt.Errorf("lsn: %s: no dot; want term.counter, such as 5.2", quote(s))
	}
	t, err := parseTerm(term)
	if err != nil {
		return LSN{}, fmt.Errorf("lsn: %s: term: %w", quote(s), err)
	}
	c, err := parseDecimal(counter)
	if err != nil {
		return LSN{}, fmt.Errorf("lsn: %s: counter: %w", quote(s), err)
	}
	return LSN{Term: t, Counter: c}, nil
}

func parseTerm(s string) (Term, error) {
	n, err := parseDecimal(s)
	if err != nil {
		return 0, err
	}
	t := Term(n)
	return t, checkTerm(t)
}

func checkTerm(t Term) error {
	if !t.Valid() {
		return fmt.Errorf("term %d is above the highest, %d", t, MaxTerm)
	}
	return nil
}

// parseDecimal accepts exactly what strconv.FormatUint writes, so that equal
// numbers have equal texts.
func parseDecimal(s string) (uint64, error) {
	if s == "" {
		return 0, errors.New("no digits")
	}
	if strings.TrimLeft(s, "0123456789") != "" {
		return 0, errors.New("not a decimal number")
	}
	if len(s) > 1 && s[0] == '0' {
		return 0, errors.New("leading zero")
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil { // only too large is left
		return 0, fmt.Errorf("above %d", uint64(math.MaxUint64))
	}
	return n, nil
}

// quote bounds what a hostile input can put into a log line. It copies, so
// that callers' inputs need not escape to the heap.
func quote(s string) string {
	const longest = 64
	if len(s) > longest {
		return strconv.Quote(s[:longest]) + "..."
	}
	return strconv.Quote(s)
}

package lsn

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

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

package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Level says how bad a check's outcome is.
type Level string

// The levels.
const (
	OK   Level = "OK"
	Warn Level = "WARN" // works, but should be looked at
	Fail Level = "FAIL" // does not work, or is not safe
)

// Check is the outcome of one check.
type Check struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"`         // what was looked at, in a word or two
	Where   string `json:"where,omitempty"` // node or pair of nodes; "" for all
	What    string `json:"what"`
	// The rest is empty if the level is OK.
	Kind Kind   `json:"kind,omitempty"` // its entry in docs/errors.md
	Why  string `json:"why,omitempty"`  // why it matters
	Fix  string `json:"fix,omitempty"`  // what to do
	See  string `json:"see,omitempty"`  // where docs/errors.md has it
}

// Report is what was found, in the order of the checks.
type Report struct {
	Checks []Check `json:"checks"`
}

// Count is the number of checks of a level.
func (r Report) Count(l Level) (count int) {
	for _, c := range r.Checks {
		if c.Level == l {
			count++
		}
	}
	return count
}

// good adds a check that found nothing wrong.
func (r *Report) good(subject, where, format string, args ...any) {
	r.Checks = append(r.Checks, Check{
		Level: OK, Subject: subject, Where: where, What: fmt.Sprintf(format, args...),
	})
}

// problem adds a check that found something wrong, with the catalogue's advice. It
// returns the check, for advice that fits better.
func (r *Report) problem(l Level, kind Kind, subject, where, format string, args ...any) *Check {
	a := catalogue[kind]
	r.Checks = append(r.Checks, Check{
		Level: l, Subject: subject, Where: where, What: fmt.Sprintf(format, args...),
		Kind: kind, Why: a.why, Fix: cmp.Or(a.fix, kind.Advice()), See: see(kind),
	})
	return &r.Checks[len(r.Checks)-1]
}

// goodSince reports whether all checks are good from a length of Checks on.
func (r *Report) goodSince(mark int) bool {
	return !slices.ContainsFunc(r.Checks[mark:], func(c Check) bool { return c.Level != OK })
}

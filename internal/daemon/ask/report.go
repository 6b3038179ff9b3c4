package ask

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// Level is how bad the outcome of a check is.
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
	Subject string `json:"subject"`         // what was checked, in a word or two
	Where   string `json:"where,omitempty"` // node or pair of nodes; "" for all
	What    string `json:"what"`
	// The rest is empty if the level is OK.
	Kind Kind   `json:"kind,omitempty"` // its entry in docs/errors.md
	Why  string `json:"why,omitempty"`  // why it matters
	Fix  string `json:"fix,omitempty"`  // what to do
	See  string `json:"see,omitempty"`  // where docs/errors.md has it
}

// Report is the outcome of all checks, in their order.
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

func (r *Report) good(subject, where, format string, args ...any) {
	r.Checks = append(r.Checks, Check{
		Level: OK, Subject: subject, Where: where, What: fmt.Sprintf(format, args...),
	})
}

// problem adds a check that found something wrong, with the catalogue's advice. The caller may
// replace the advice in the check that it returns.
func (r *Report) problem(l Level, kind Kind, subject, where, format string, args ...any) *Check {
	r.Checks = append(r.Checks, Check{
		Level: l, Subject: subject, Where: where, What: fmt.Sprintf(format, args...),
		Kind: kind, Why: catalogue[kind].why, Fix: catalogue[kind].fix, See: see(kind),
	})
	return &r.Checks[len(r.Checks)-1]
}

// goodSince adds a good check if all from a length of Checks on are good.
func (r *Report) goodSince(mark int, subject, where, format string, args ...any) {
	if !slices.ContainsFunc(r.Checks[mark:], func(c Check) bool { return c.Level != OK }) {
		r.good(subject, where, format, args...)
	}
}

// The columns of a report: level, subject, and text up to the width of the terminal.
const subjectAt, textAt, adviceAt = 6, 20, 28

var levelColors = map[Level]*color.Color{
	Fail: color.New(color.FgRed, color.Bold),
	Warn: color.New(color.FgYellow),
	OK:   color.New(color.FgGreen),
}

// Print writes the checks in lines of at most that width, each with its advice below. Neighbors
// with the same advice share it, below the last of them.
func (r Report) Print(w io.Writer, width int) error {
	var b strings.Builder
	for i, c := range r.Checks {
		head := levelColors[c.Level].Sprintf("%-*s", subjectAt, c.Level) +
			fmt.Sprintf("%-*s", textAt-subjectAt, c.Subject)
		text := c.What
		if c.Where != "" {
			text = c.Where + ": " + text
		}
		writeWrapped(&b, head, text, textAt, width)
		if i+1 < len(r.Checks) {
			if next := r.Checks[i+1]; c.Kind == next.Kind && c.Why == next.Why && c.Fix == next.Fix {
				continue
			}
		}
		for _, more := range [][2]string{{"why", c.Why}, {"fix", c.Fix}, {"see", c.See}} {
			if more[1] != "" {
				writeWrapped(&b, fmt.Sprintf("%*s%-6s", textAt+2, "", more[0]), more[1], adviceAt, width)
			}
		}
	}
	if ok := r.Count(OK); ok > 0 { // --quiet leaves them out
		fmt.Fprintf(&b, "%d OK, ", ok)
	}
	fmt.Fprintf(&b, "%s, %s\n", console.Count(r.Count(Warn), "warning"),
		console.Count(r.Count(Fail), "failure"))
	_, err := io.WriteString(w, b.String())
	return err
}

// writeWrapped writes a head, and beside it text in lines of at most that width. A longer word has
// a line of its own.
func writeWrapped(b *strings.Builder, head, text string, indent, width int) {
	b.WriteString(head)
	used := 0
	for _, word := range strings.Fields(text) {
		if used > 0 && indent+used+1+len(word) > width {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		} else if used > 0 {
			word = " " + word
		}
		b.WriteString(word)
		used += len(word)
	}
	b.WriteString("\n")
}

// Err is an error if a check failed or, if strict, warns.
func (r Report) Err(strict bool) error {
	warnings := console.Count(r.Count(Warn), "warning")
	switch fails := r.Count(Fail); {
	case fails > 0:
		return fmt.Errorf("%s, %s", console.Count(fails, "failure"), warnings)
	case r.Count(Warn) > 0 && strict:
		return errors.New(warnings)
	}
	return nil
}

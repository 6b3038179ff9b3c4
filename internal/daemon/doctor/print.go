package doctor

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// The columns of a report: level, subject, and text up to the terminal's width.
const subjectAt, textAt, adviceAt = 6, 20, 28

var levelColors = map[Level]*color.Color{
	Fail: color.New(color.FgRed, color.Bold),
	Warn: color.New(color.FgYellow),
	OK:   color.New(color.FgGreen),
}

// Print writes each check, in lines that end before a width, and below it what to do. Checks
// with the same advice have it once, below the last of them.
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

// writeWrapped writes a head, and text beside it in lines that end before width. A word
// that is longer has a line of its own.
func writeWrapped(b *strings.Builder, head, text string, indent, width int) {
	b.WriteString(head)
	used := 0
	for _, word := range strings.Fields(text) {
		switch {
		case used == 0:
		case indent+used+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	b.WriteString("\n")
}

// Err is the error if something fails or, if it is to be strict, is a warning.
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

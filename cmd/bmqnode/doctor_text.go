package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
)

// The columns of a report: level, subject, and text up to the terminal's width.
const subjectAt, textAt, adviceAt = 6, 20, 28

var levelColors = map[doctor.Level]*color.Color{
	doctor.Fail: color.New(color.FgRed, color.Bold),
	doctor.Warn: color.New(color.FgYellow),
	doctor.OK:   color.New(color.FgGreen),
}

// printReport writes each check, and below it what to do. Checks with the same advice
// have it once, below the last of them.
func printReport(w io.Writer, report doctor.Report) error {
	width := screenWidth(100)
	var b strings.Builder
	for i, c := range report.Checks {
		head := levelColors[c.Level].Sprintf("%-*s", subjectAt, c.Level) +
			fmt.Sprintf("%-*s", textAt-subjectAt, c.Subject)
		text := c.What
		if c.Where != "" {
			text = c.Where + ": " + text
		}
		writeWrapped(&b, head, text, textAt, width)
		if i+1 < len(report.Checks) {
			if next := report.Checks[i+1]; c.Kind == next.Kind && c.Why == next.Why && c.Fix == next.Fix {
				continue
			}
		}
		for _, more := range [][2]string{{"why", c.Why}, {"fix", c.Fix}, {"see", c.See}} {
			if more[1] != "" {
				writeWrapped(&b, fmt.Sprintf("%*s%-6s", textAt+2, "", more[0]), more[1], adviceAt, width)
			}
		}
	}
	if ok := report.Count(doctor.OK); ok > 0 { // --quiet leaves them out
		fmt.Fprintf(&b, "%d OK, ", ok)
	}
	fmt.Fprintf(&b, "%s, %s\n", console.Count(report.Count(doctor.Warn), "warning"),
		console.Count(report.Count(doctor.Fail), "failure"))
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

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
)

// The columns of a report: level, subject, and text up to the screen's width.
const (
	subjectAt, textAt = 6, 20
)

func printReport(w io.Writer, report doctor.Report) error {
	var b strings.Builder
	width := screenWidth(100)
	for i, c := range report.Checks {
		if i+1 < len(report.Checks) && sameAdvice(c, report.Checks[i+1]) {
			c.Why, c.Mend, c.See = "", "", "" // once, below the last of them
		}
		writeCheck(&b, c, width)
	}
	if ok := report.Count(doctor.OK); ok > 0 { // else they are left out
		fmt.Fprintf(&b, "%d OK, ", ok)
	}
	fmt.Fprintf(&b, "%s, %s\n", counted(report.Count(doctor.Warn), "warning"), counted(report.Count(doctor.Fail), "failure"))
	_, err := io.WriteString(w, b.String())
	return err
}

func sameAdvice(a, b doctor.Check) bool {
	return a.Kind == b.Kind && a.Why == b.Why && a.Mend == b.Mend
}

func writeCheck(b *strings.Builder, c doctor.Check, width int) {
	text := c.What
	if c.Where != "" {
		text = c.Where + ": " + text
	}
	head := tintLevel(c.Level)(fmt.Sprintf("%-*s", subjectAt, c.Level)) + fmt.Sprintf("%-*s", textAt-subjectAt, c.Subject)
	for i, line := range wrapped(text, width-textAt) {
		if i > 0 {
			head = strings.Repeat(" ", textAt)
		}
		b.WriteString(head + line + "\n")
	}
	for _, more := range [][2]string{{"why", c.Why}, {"mend", c.Mend}, {"see", c.See}} {
		writeMore(b, more[0], more[1], width)
	}
}

// writeMore writes what belongs to a check under it.
func writeMore(b *strings.Builder, label, text string, width int) {
	if text == "" {
		return
	}
	const indent = textAt + 2
	for _, line := range wrapped(text, width-indent-6) {
		fmt.Fprintf(b, "%*s%-6s%s\n", indent, "", label, line)
		label = ""
	}
}

func tintLevel(l doctor.Level) func(...any) string {
	switch l {
	case doctor.Fail:
		return color.New(color.FgRed, color.Bold).Sprint
	case doctor.Warn:
		return color.New(color.FgYellow).Sprint
	}
	return color.New(color.FgGreen).Sprint
}

// wrapped breaks text at spaces into lines of at most width bytes; a word that is
// longer has a line of its own.
func wrapped(text string, width int) (lines []string) {
	var line string
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

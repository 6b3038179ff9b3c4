package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// doctorOptions are the flags of `doctor`.
type doctorOptions struct {
	remote.Cluster
	strict, quiet bool
	timeout       time.Duration
}

func doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [ADDR ...]",
		Short: "Find what is wrong with a cluster that runs",
		Long: "Ask every node of a cluster, and name what is wrong, why it matters and how to\n" +
			"fix it. ADDR is the admin address of any node, as with --admin; the others are\n" +
			"found through it. It exits with 0 if nothing fails, with 1 if something does\n" +
			"(with --strict: on warnings, too), with 2 if it was called wrongly.\n\n" +
			"Before a node is started, 'bmqnode run --check' examines its configuration.",
		Example: "  bmqnode doctor 10.0.0.1:7402",
		RunE:    o.run,

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	o.Register(f)
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "most time for the answers of all nodes")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 on warnings, too")
	f.BoolVar(&o.quiet, "quiet", false, "leave out what is in order")
	return cmd
}

func (o *doctorOptions) run(cmd *cobra.Command, args []string) error {
	if o.timeout <= 0 {
		return config.Usage(fmt.Errorf("--timeout is %s, but must be positive", o.timeout))
	}
	if len(args) > 0 {
		o.Addrs = args
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	report, err := o.Examine(ctx, len(args) > 0 || cmd.Flags().Changed("admin"))
	if err != nil {
		return err
	}
	if o.quiet {
		inOrder := func(c doctor.Check) bool { return c.Level == doctor.OK }
		report.Checks = slices.DeleteFunc(report.Checks, inOrder)
	}
	if o.JSON {
		err = printJSON(cmd.OutOrStdout(), report)
	} else {
		err = printReport(cmd.OutOrStdout(), report)
	}
	if err != nil {
		return err
	}
	fails := report.Count(doctor.Fail)
	warnings := console.Count(report.Count(doctor.Warn), "warning")
	switch {
	case fails > 0:
		return fmt.Errorf("%s, %s", console.Count(fails, "failure"), warnings)
	case report.Count(doctor.Warn) > 0 && o.strict:
		return errors.New(warnings)
	}
	return nil
}

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

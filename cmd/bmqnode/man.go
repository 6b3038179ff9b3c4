package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the help of every command as pages for man.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages, one for each command",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writePages(args[0], cmd.Root())
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
}

// writePages writes the page of a command, and of those below it.
func writePages(dir string, cmd *cobra.Command) error {
	file := filepath.Join(dir, pageName(cmd)+".1")
	errs := []error{os.WriteFile(file, []byte(page(cmd)), 0o644)}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			errs = append(errs, writePages(dir, below))
		}
	}
	return errors.Join(errs...)
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is a command's help in the language of man.
func page(cmd *cobra.Command) string {
	var b strings.Builder
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"bmqnode %s\"\n", roff(strings.ToUpper(name)), roff(version()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(cmp.Or(cmd.Long, cmd.Short+".")))
	if cmd.HasExample() {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	cmd.InitDefaultHelpFlag()
	b.WriteString(".SH OPTIONS\n")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		term := strings.TrimSpace("--" + f.Name + " " + value)
		if f.Shorthand != "" {
			term = "-" + f.Shorthand + ", " + term
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s", roff(term), roff(usage))
		switch f.DefValue {
		case "", "false", "[]", "0", "0s":
		default:
			fmt.Fprintf(&b, " (default %s)", roff(f.DefValue))
		}
		b.WriteString("\n")
	})
	var others []string
	for _, other := range append([]*cobra.Command{cmd.Parent()}, cmd.Commands()...) {
		if other != nil && (other.IsAvailableCommand() || other == cmd.Parent()) {
			others = append(others, roff(pageName(other))+"(1)")
		}
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ", "))
	return b.String()
}

// roff writes text so that man shows it as it is: no character is a command, and an empty
// line begins a paragraph.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case line == "":
			lines[i] = ".PP"
		case line[0] == '.' || line[0] == '\'':
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

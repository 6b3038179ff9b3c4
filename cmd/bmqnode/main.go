// Command bmqnode runs and watches members of a bmqelect cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// Exit codes.
const (
	exitFailure = 1 // it could not be done, or the node failed
	exitUsage   = 2 // flags or configuration are wrong; nothing was done
)

// usageError is a mistake in what was typed or configured.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := root().ExecuteContext(ctx)
	var status exitStatus
	if err == nil || errors.As(err, &status) {
		return int(status)
	}
	fmt.Fprintln(os.Stderr, console.Alert("bmqnode:"), err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailure
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bmqnode",
		Short: "A leader that stays put: run, watch and hand over an elected leader",
		Long: "bmqnode runs a member of a bmqelect cluster: nodes that elect one leader and keep it,\n" +
			"whatever the network does. Try it: bmqnode mesh --nodes 5",
		SilenceErrors: true,

		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args:                       usageArgs(noSuchCommand),
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetUsageTemplate(wrappedUsage(cmd.UsageTemplate()))
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see '%s --help'", err, c.CommandPath())}
	})
	cmd.AddCommand(runCommand(), execCommand(), guardCommand(), meshCommand(), statusCommand(), watchCommand(), transferCommand(), stepDownCommand(), forgetCommand(), doctorCommand(), faultCommand(), emergencyCommand(), replayCommand(), versionCommand())
	return cmd
}

// wrappedUsage lets a usage template break the lines of flags between words, at the
// width of the terminal.
func wrappedUsage(template string) string {
	cobra.AddTemplateFunc("wrapped", func(f *pflag.FlagSet) string { return f.FlagUsagesWrapped(helpWidth()) })
	template = strings.ReplaceAll(template, ".LocalFlags.FlagUsages", "wrapped .LocalFlags")
	return strings.ReplaceAll(template, ".InheritedFlags.FlagUsages", "wrapped .InheritedFlags")
}

// helpWidth is the width of the terminal, between 60 and 120 columns; 80 where there is none.
func helpWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 80
	}
	return min(max(width, 60), 120)
}

// noSuchCommand helps with a mistyped command.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("there is no command %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no command %q", args[0])
}

// usageArgs makes what check finds wrong a mistake of the user's.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())}
		}
		return nil
	}
}

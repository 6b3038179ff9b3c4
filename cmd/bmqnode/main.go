// Command bmqnode runs and watches members of a bmqelect cluster.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/exec"
)

// Exit codes.
const (
	exitFailure  = 1 // it could not be done, or the node failed
	exitUsage    = 2 // flags or configuration are wrong; nothing was done
	exitNoLeader = 3 // there is no leader
)

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(),
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := root().ExecuteContext(ctx)
	var status exec.ExitStatus
	if err == nil || errors.As(err, &status) {
		return int(status)
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(os.Stderr, console.Alert("bmqnode:"), strings.TrimSuffix(line, "\n"))
	}
	switch {
	case errors.As(err, new(config.UsageError)):
		return exitUsage
	case errors.As(err, new(ask.NoLeaderError)):
		return exitNoLeader
	}
	return exitFailure
}

// finishUnread lets a command finish its work although nobody reads its output any more, as behind
// head.
func finishUnread() { signal.Ignore(syscall.SIGPIPE) }

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "bmqnode",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	// Flags are described in lines that end between words, at the width of the terminal.
	cobra.AddTemplateFunc("wrapped", func(f *pflag.FlagSet) string {
		return f.FlagUsagesWrapped(screenWidth(80))
	})
	cmd.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages", "wrapped .LocalFlags",
		".InheritedFlags.FlagUsages", "wrapped .InheritedFlags",
	).Replace(cmd.UsageTemplate()))
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
			err = noSuchCommand(c, words) // whose flag it is meant to be
		}
		return config.Usage(fmt.Errorf("%w; see '%s --help'", config.Meant(err, c.Flags()),
			c.CommandPath()))
	})
	cmd.AddCommand(
		runCommand(), execCommand(), supervisorCommand(), meshCommand(), leaderCommand(),
		statusCommand(), watchCommand(), historyCommand(), recordIncidentCommand(),
		transferCommand(), stepDownCommand(), pauseCommand(), resumeCommand(), setCommand(),
		recordCommand(), votersCommand(), electionsCommand(),
		forgetCommand(), doctorCommand(), faultCommand(), emergencyCommand(), certsCommand(),
		rotateGossipKeyCommand(),
		replayCommand(), labCommand(), manCommand(), versionCommand(),
	)
	finish(cmd)
	return cmd
}

//go:embed help.txt
var help string

// describe gives a command its part of help.txt: a line, a description, and examples.
func describe(cmd *cobra.Command) {
	_, text, _ := strings.Cut(help, "# "+cmd.CommandPath()+"\n")
	text, _, _ = strings.Cut(strings.TrimRight(text, "\n"), "\n\n# ")
	text, cmd.Example, _ = strings.Cut(text, "\n\nExamples:\n")
	cmd.Short, cmd.Long, _ = strings.Cut(text, "\n\n")
}

// finish completes a command and its subcommands: help, completions, and errors about arguments,
// which are usage errors. A command takes no arguments unless it sets Args; one that only has
// subcommands prints its help.
func finish(cmd *cobra.Command) {
	describe(cmd)
	completeFlags(cmd)
	switch {
	case cmd.RunE == nil && cmd.Run == nil:
		cmd.Args, cmd.SuggestionsMinimumDistance = noSuchCommand, 2
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	case cmd.Args == nil:
		cmd.Args = noArgs
	}
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			if _, wants, _ := strings.Cut(cmd.Use, " "); wants != "" {
				err = fmt.Errorf("%s %s: %w", cmd.Name(), wants, err)
			}
			return config.Usage(fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath()))
		}
		return nil
	}
	for _, below := range cmd.Commands() {
		finish(below)
	}
}

// screenWidth is the width of the terminal, from 60 to 120 columns. Without a terminal it is
// otherwise.
func screenWidth(otherwise int) int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return otherwise
	}
	return min(max(width, 60), 120)
}

func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("there is no command %q; did you mean %s?",
			args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no command %q", args[0])
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is one word too many: '%s' takes flags only", args[0], cmd.CommandPath())
	}
	return nil
}

// version is the version of the module, or the commit that this was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

func versionLine() string {
	return fmt.Sprintf("bmqnode %s, %s %s/%s", version(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version",
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), versionLine()) },
	}
}

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
)

// completeTime bounds the question for names, while somebody waits at a prompt.
const completeTime = time.Second

// known are the values of flags that have few.
var known = map[string][]string{
	"profile":       elector.ProfileNames(),
	"log-format":    {"human", "json"},
	"log-level":     {"trace", "debug", "info", "warn", "error"},
	"scouting-rule": {"default", "node-order"},
	"restart":       {"never", "on-failure", "always"},
	"format":        {"text", "json", "html", "svg"},
}

// paths are the flags whose value is a file or a directory, which the shell completes.
var paths = map[string]cobra.ShellCompDirective{
	"admin-token-file": cobra.ShellCompDirectiveDefault,
	"admin-socket":     cobra.ShellCompDirectiveDefault,
	"config":           cobra.ShellCompDirectiveDefault,
	"health-command":   cobra.ShellCompDirectiveDefault,
	"log-file":         cobra.ShellCompDirectiveDefault,
	"on-leader":        cobra.ShellCompDirectiveDefault,
	"on-follower":      cobra.ShellCompDirectiveDefault,
	"on-prepare":       cobra.ShellCompDirectiveDefault,
	"output":           cobra.ShellCompDirectiveDefault,
	"data-dir":         cobra.ShellCompDirectiveFilterDirs,
	"tls-dir":          cobra.ShellCompDirectiveFilterDirs,
	"dir":              cobra.ShellCompDirectiveFilterDirs,
}

// completeFlags sets what the shell offers for each flag. It offers nothing for most of them; by
// default it would offer files.
func completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, set := cmd.GetFlagCompletionFunc(f.Name); set {
			return
		}
		directive, isPath := paths[f.Name]
		if !isPath {
			directive = cobra.ShellCompDirectiveNoFileComp
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(known[f.Name], directive))
	})
}

// reach adds the flags by which a command finds nodes, after the command's own flags. The shell
// offers the names of running nodes for the first arguments and for --to, and names of elections
// for --group.
func reach(cmd *cobra.Command, c *ask.Cluster, arguments int) {
	c.Register(cmd.Flags())
	nodes := offer(func(ctx context.Context, _ string) []string {
		names, _, _ := c.Names(ctx, "")
		return names
	})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) (
		[]string, cobra.ShellCompDirective,
	) {
		if len(args) >= arguments {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nodes(cmd, args, begun)
	}
	// It fails if cmd has no such flag.
	_ = cmd.RegisterFlagCompletionFunc("to", nodes)
	_ = cmd.RegisterFlagCompletionFunc("group",
		offer(func(ctx context.Context, begun string) []string {
			_, groups, _ := c.Names(ctx, begun)
			return groups
		}))
}

// offer lets the shell offer names that it asks a node for. It hides errors: a prompt has no place
// for them.
func offer(names func(ctx context.Context, begun string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		return names(ctx, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

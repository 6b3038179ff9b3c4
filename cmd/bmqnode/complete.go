package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// completeTime bounds the question for names while somebody waits at a prompt.
const completeTime = time.Second

// known are the flags with few values.
var known = map[string][]string{
	"profile":       elector.ProfileNames(),
	"log-format":    {"human", "json"},
	"log-level":     {"trace", "debug", "info", "warn", "error"},
	"scouting-rule": {"default", "node-order"},
	"restart":       {"never", "on-failure", "always"},
	"format":        {"text", "json", "html", "svg"},
}

// paths are the flags whose value is a file or a folder; the shell completes these.
var paths = map[string]cobra.ShellCompDirective{
	"admin-token-file": cobra.ShellCompDirectiveDefault,
	"admin-socket":     cobra.ShellCompDirectiveDefault,
	"config":           cobra.ShellCompDirectiveDefault,
	"log-file":         cobra.ShellCompDirectiveDefault,
	"on-leader":        cobra.ShellCompDirectiveDefault,
	"on-follower":      cobra.ShellCompDirectiveDefault,
	"output":           cobra.ShellCompDirectiveDefault,
	"data-dir":         cobra.ShellCompDirectiveFilterDirs,
	"tls-dir":          cobra.ShellCompDirectiveFilterDirs,
	"dir":              cobra.ShellCompDirectiveFilterDirs,
}

// completeFlags says for every flag of a command and of those below it what the shell may
// offer: where it knows nothing, nothing, rather than the files of the folder.
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
	for _, below := range cmd.Commands() {
		completeFlags(below)
	}
}

// reach adds the flags that say how nodes are reached to a command that has its own flags. It
// lets the shell offer the names of the nodes that run, for the first arguments of cmd and
// for the flag --to, and those of elections for --group.
func reach(cmd *cobra.Command, c *remote.Cluster, arguments int) {
	c.Register(cmd.Flags())
	nodes := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		names, _ := namesOf(cmd, c)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) (
		[]string, cobra.ShellCompDirective,
	) {
		if len(args) >= arguments {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nodes(cmd, args, begun)
	}
	if cmd.Flags().Lookup("to") != nil {
		_ = cmd.RegisterFlagCompletionFunc("to", nodes)
	}
	if cmd.Flags().Lookup("group") != nil {
		_ = cmd.RegisterFlagCompletionFunc("group", func(cmd *cobra.Command, _ []string, _ string) (
			[]string, cobra.ShellCompDirective,
		) {
			_, groups := namesOf(cmd, c)
			return groups, cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// namesOf asks the first node that answers.
func namesOf(cmd *cobra.Command, c *remote.Cluster) (nodes, groups []string) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
	defer cancel()
	nodes, groups, _ = c.Names(ctx) // at a prompt there is no place for an error
	return nodes, groups
}

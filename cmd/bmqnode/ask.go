package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// asking makes cmd, which has its own flags already, a command that asks the nodes of a cluster.
// Its arguments are the names of that many nodes, unless cmd.Args is set.
func asking(
	cmd *cobra.Command, nodes int, run func(*cobra.Command, *ask.Cluster, []string) error,
) *cobra.Command {
	var c ask.Cluster
	reach(cmd, &c, nodes)
	if cmd.Args == nil && nodes > 0 {
		cmd.Args = cobra.ExactArgs(nodes)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, &c, args) }
	return cmd
}

func statusCommand() *cobra.Command {
	var sel cluster.Selection
	cmd := &cobra.Command{Use: "status"}
	f := cmd.Flags()
	f.StringVar(&sel.Group, "group", "",
		"show this election alone (default: in the table "+cluster.DefaultGroup+", as JSON all)")
	f.StringVar(&sel.Prefix, "prefix", "", "list the elections whose names begin so")
	f.IntVar(&sel.Limit, "limit", 0, "list so many elections by name, at most 1000")
	f.StringVar(&sel.After, "after", "", "list the elections whose names come after this one")
	f.IntVar(&sel.Top, "top", 0, "if there are too many to list, list so many that matter most (default 10)")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		if err := admin.CheckSelection(sel); err != nil {
			return config.Usage(err)
		}
		answers, err := c.Status(cmd.Context(), sel)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), answers)
		case f.Changed("prefix") || f.Changed("limit") || f.Changed("after") || f.Changed("top"):
			return ask.PrintElections(cmd.OutOrStdout(), answers)
		}
		return ask.PrintStatus(cmd.OutOrStdout(), answers)
	})
}

func watchCommand() *cobra.Command {
	var only admin.Stream
	cmd := &cobra.Command{Use: "watch"}
	cmd.Flags().StringVar(&only.Group, "group", "", "events of this election alone")
	cmd.Flags().StringVar(&only.Prefix, "prefix", "", "events of elections whose names begin so")
	cmd.Flags().StringSliceVar(&only.Kinds, "kind", nil,
		"events of these kinds: transition, record, voters, probe (default: all)")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		if err := only.Check(); err != nil {
			return config.Usage(err)
		}
		return c.Watch(cmd.Context(), cmd.OutOrStdout(), only)
	})
}

func historyCommand() *cobra.Command {
	var group string
	cmd := &cobra.Command{Use: "history"}
	cmd.Flags().StringVar(&group, "group", cluster.DefaultGroup, "the election that is meant")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		all, answers, err := c.History(cmd.Context(), group)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if a.Error != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "without %s: %s\n", a.Node, a.Error)
			}
		}
		if c.JSON {
			all := append([]recording.Leadership{}, all...) // [] and not null if it is empty
			return console.JSON(cmd.OutOrStdout(), admin.History{Leaderships: all})
		}
		return ask.PrintHistory(cmd.OutOrStdout(), all)
	})
}

func leaderCommand() *cobra.Command {
	var group string
	var wait time.Duration
	var confirm bool
	cmd := &cobra.Command{Use: "leader"}
	cmd.Flags().StringVar(&group, "group", cluster.DefaultGroup, "election whose leader is meant")
	cmd.Flags().DurationVar(&wait, "wait", 0, "longest wait for a leader, as in 30s")
	cmd.Flags().BoolVar(&confirm, "confirm", false, "let a quorum of the voters confirm it")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		leader, err := awaitLeader(cmd.Context(), wait, func(ctx context.Context) (admin.Leader, error) {
			if confirm {
				return c.Confirm(ctx, group)
			}
			return c.Leader(ctx, group)
		})
		if c.JSON && (err == nil || errors.As(err, new(ask.NoLeaderError))) {
			return errors.Join(err, console.JSON(cmd.OutOrStdout(), leader))
		}
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), leader.Leader)
		}
		return err
	})
}

// askAgain is the pause between two questions for a leader.
const askAgain = 200 * time.Millisecond

func awaitLeader(
	ctx context.Context, wait time.Duration, find func(context.Context) (admin.Leader, error),
) (leader admin.Leader, err error) {
	for end := time.Now().Add(wait); ; {
		leader, err = find(ctx)
		left := time.Until(end)
		if err == nil || left <= 0 || errors.As(err, new(config.UsageError)) {
			return leader, err
		}
		select {
		case <-ctx.Done():
			return leader, err
		case <-time.After(min(left, askAgain)):
		}
	}
}

func doctorCommand() *cobra.Command {
	var strict, quiet bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:  "doctor [ADDR ...]",
		Args: cobra.ArbitraryArgs,
	}
	f := cmd.Flags()
	f.DurationVar(&timeout, "timeout", 5*time.Second, "most time for the answers of all nodes")
	f.BoolVar(&strict, "strict", false, "exit with 1 on warnings, too")
	f.BoolVar(&quiet, "quiet", false, "leave out what is in order")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, args []string) error {
		if timeout <= 0 {
			return config.Usage(fmt.Errorf("--timeout is %s, but must be positive", timeout))
		}
		if len(args) > 0 {
			c.Addrs = args
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		report, err := c.Examine(ctx, len(args) > 0 || f.Changed("admin"))
		if err != nil {
			return err
		}
		if quiet {
			inOrder := func(c ask.Check) bool { return c.Level == ask.OK }
			report.Checks = slices.DeleteFunc(report.Checks, inOrder)
		}
		if c.JSON {
			err = console.JSON(cmd.OutOrStdout(), report)
		} else {
			err = report.Print(cmd.OutOrStdout(), screenWidth(100))
		}
		if err != nil {
			return err
		}
		return report.Err(strict)
	})
}

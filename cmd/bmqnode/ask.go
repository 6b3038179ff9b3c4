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

// asking makes cmd, which has its own flags, one that asks the nodes of a cluster. Its arguments
// are the names of so many nodes, unless it says otherwise.
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
	var group string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show every node: role, leader, term, LSN, lease, links",
		Example: "  bmqnode status --group jobs",
	}
	cmd.Flags().StringVar(&group, "group", "",
		"show this election alone (default: in the table "+cluster.DefaultGroup+", as JSON all)")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		answers, err := c.Status(cmd.Context(), group)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), answers)
		}
		return ask.PrintStatus(cmd.OutOrStdout(), answers)
	})
}

func watchCommand() *cobra.Command {
	return asking(&cobra.Command{
		Use:   "watch",
		Short: "Print every node's transitions as they happen, until Ctrl-C",
		Long: "Print the transitions of every node as they happen, until Ctrl-C. With --json a\n" +
			"line is an Event, a Reset where events are gone, or an Answer with an error from\n" +
			"a node that was lost, and without one when it is back.",
		Example: "  bmqnode watch --json | jq -r 'select(.to == \"LEADER\").node'",
	}, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		return c.Watch(cmd.Context(), cmd.OutOrStdout())
	})
}

func historyCommand() *cobra.Command {
	var group string
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show past leaderships, and why they ended",
		Long: "Show past leaderships: who, in which term, from, to, and why each ended. A node\n" +
			"keeps the newest 256 KiB of what it has seen on disk; this is what all that\n" +
			"answer know together. SAID BY is whose word the reason is: the leader's own if\n" +
			"it can be asked, else that of a node that saw the end, which may call a stop a\n" +
			"TRANSFERRED or LEADER_CEDED. Between TO and the next FROM nobody led.",
		Example: "  bmqnode history --group jobs\n" +
			"  bmqnode history --json | jq '.leaderships[] | select(.term > 7)'",
	}
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
			all := append([]recording.Leadership{}, all...) // a list also if there is none
			return console.JSON(cmd.OutOrStdout(), admin.History{Leaderships: all})
		}
		return ask.PrintHistory(cmd.OutOrStdout(), all)
	})
}

func leaderCommand() *cobra.Command {
	var group string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "leader",
		Short: "Print the name of the node that leads",
		Long: "Print the name of the node that leads: the one that says so itself; if it cannot\n" +
			"be asked from here, the one that others follow. It ends at the leader's answer,\n" +
			"and waits 3 s at most for a node that is silent. Exit status: 0 if there is a\n" +
			"leader, 3 if there is none, 1 if no node answers. With --wait it asks again and\n" +
			"again until there is a leader, and then has the status of the last answer.",
		Example: "  bmqnode leader\n  bmqnode leader --wait 30s\n  bmqnode leader --json --admin 10.0.0.1:7402,10.0.0.2:7402",
	}
	cmd.Flags().StringVar(&group, "group", cluster.DefaultGroup, "election whose leader is meant")
	cmd.Flags().DurationVar(&wait, "wait", 0, "longest wait for a leader, as in 30s")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		leader, err := awaitLeader(cmd.Context(), c, group, wait)
		if c.JSON && (err == nil || errors.As(err, new(ask.NoLeaderError))) {
			return errors.Join(err, console.JSON(cmd.OutOrStdout(), leader))
		}
		if err == nil {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), leader.Leader)
		}
		return err
	})
}

// askAgain is the pause before nodes that know no leader are asked again.
const askAgain = 200 * time.Millisecond

func awaitLeader(
	ctx context.Context, c *ask.Cluster, group string, wait time.Duration,
) (leader admin.Leader, err error) {
	for end := time.Now().Add(wait); ; {
		leader, err = c.Leader(ctx, group)
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
		Use:   "doctor [ADDR ...]",
		Short: "Find what is wrong with a cluster that runs",
		Long: "Ask every node of a cluster, and name what is wrong, why it matters and how to\n" +
			"fix it. ADDR is the admin address of any node, as with --admin; the others are\n" +
			"found through it. It exits with 0 if nothing fails, with 1 if something does\n" +
			"(with --strict: on warnings, too), with 2 if it was called wrongly.\n\n" +
			"Before a node is started, 'bmqnode run --check' examines its configuration.",
		Example: "  bmqnode doctor 10.0.0.1:7402",
		Args:    cobra.ArbitraryArgs,
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

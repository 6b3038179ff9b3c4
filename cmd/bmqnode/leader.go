package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func leaderCommand() *cobra.Command {
	var c remote.Cluster
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
		Args:    usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			leader, err := awaitLeader(cmd.Context(), &c, group, wait)
			if c.JSON && (err == nil || errors.As(err, new(remote.NoLeaderError))) {
				return errors.Join(err, console.JSON(cmd.OutOrStdout(), leader))
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), leader.Leader)
			return err
		},
	}
	cmd.Flags().StringVar(&group, "group", cluster.DefaultGroup, "election whose leader is meant")
	cmd.Flags().DurationVar(&wait, "wait", 0, "longest wait for a leader, as in 30s")
	reach(cmd, &c, 0)
	return cmd
}

// askAgain is the pause before nodes that know no leader are asked again.
const askAgain = 200 * time.Millisecond

func awaitLeader(
	ctx context.Context, c *remote.Cluster, group string, wait time.Duration,
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

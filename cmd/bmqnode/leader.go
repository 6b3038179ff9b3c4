package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func leaderCommand() *cobra.Command {
	var c remote.Cluster
	var group string
	cmd := &cobra.Command{
		Use:   "leader",
		Short: "Print the name of the node that leads",
		Long: "Print the name of the node that leads: the one that says so itself; if it cannot\n" +
			"be asked from here, the one that others follow. It ends at the leader's answer,\n" +
			"and waits 3 s at most for a node that is silent. Exit status: 0 if there is a\n" +
			"leader, 3 if there is none, 1 if no node answers.",
		Example: "  bmqnode leader\n  bmqnode leader --json --admin 10.0.0.1:7402,10.0.0.2:7402",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			leader, err := c.Leader(cmd.Context(), group)
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
	reach(cmd, &c, 0)
	return cmd
}

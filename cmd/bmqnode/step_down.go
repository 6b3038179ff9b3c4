package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func stepDownCommand() *cobra.Command {
	var c remote.Cluster
	var group string
	var rest, timeout time.Duration
	cmd := &cobra.Command{
		Use:   "step-down",
		Short: "Let the leader step down, and not stand again for a while",
		Long: "Let the leader step down in favor of the best follower, and not stand again for\n" +
			"a while: before its machine is worked on, for example. If no follower can take\n" +
			"over there is no leader afterwards; 'bmqnode transfer' then keeps the old one.",
		Example: "  bmqnode step-down --for 30s",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return c.AtLeader(ctx, group, func(leader cluster.NodeID, client *admin.Client) error {
				req := admin.StepDownRequest{For: rest.String(), Group: group}
				st, err := client.StepDown(ctx, req)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s leads no more; it says: %s\n",
					leader, remote.GroupIn(st, group).Explanation)
				return nil
			})
		},
	}
	c.Register(cmd.Flags())
	f := cmd.Flags()
	f.DurationVar(&rest, "for", 0, "how long it is not to stand again, at most 24h")
	f.StringVar(&group, "group", cluster.DefaultGroup, "election whose leader is meant")
	f.DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for its work to stop")
	return cmd
}

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

func stepDownCommand() *cobra.Command {
	var r remote
	var group string
	var rest, timeout time.Duration
	cmd := &cobra.Command{
		Use:   "step-down",
		Short: "Let the leader step down, and not stand again for a while",
		Long: "Let the leader step down in favor of the best follower, and not stand again for a while:\n" +
			"before its machine is worked on, for example. Without a follower that could take over\n" +
			"there is no leader afterwards; transfer, unlike this, then leaves the old one in office.",
		Example: "  bmqnode step-down --for 30s",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return r.stepDown(ctx, cmd.OutOrStdout(), group, rest)
		},
	}
	r.register(cmd)
	cmd.Flags().DurationVar(&rest, "for", 0, "how long it is not to stand again, at most 24h")
	cmd.Flags().StringVar(&group, "group", cluster.DefaultGroup, "election whose leader is meant")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for its work to stop")
	return cmd
}

func (r *remote) stepDown(ctx context.Context, out io.Writer, group string, rest time.Duration) error {
	leader, err := r.leader(ctx, group)
	if err != nil {
		return err
	}
	client := r.client(leader)
	defer client.Close()
	st, err := client.StepDown(ctx, admin.StepDownRequest{For: rest.String(), Group: group})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s leads no more; it says: %s\n", leader.Node, groupIn(st, group).Explanation)
	return nil
}

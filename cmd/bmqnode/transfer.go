package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

func transferCommand() *cobra.Command {
	var r remote
	var to, group string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "transfer",
		Short:   "Hand leadership over to another node",
		Example: "  bmqnode transfer --to n2\n  bmqnode transfer   # to the best follower",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			leader, err := r.leader(ctx, group)
			if err != nil {
				return err
			}
			client := r.client(leader)
			defer client.Close()
			began := time.Now()
			st, err := client.Transfer(ctx, admin.TransferRequest{To: cluster.NodeID(to), Group: group})
			if err != nil {
				return err
			}
			g := groupIn(st, group)
			fmt.Fprintf(cmd.OutOrStdout(), "%s leads in term %d, handed over by %s in %s\n",
				g.Leader, g.Term, leader.Node, time.Since(began).Round(time.Millisecond))
			return nil
		},
	}
	r.register(cmd)
	cmd.Flags().StringVar(&to, "to", "", "node that is to lead (default: the best follower)")
	cmd.Flags().StringVar(&group, "group", cluster.DefaultGroup, "election whose leader is meant")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for the new leader")
	return cmd
}

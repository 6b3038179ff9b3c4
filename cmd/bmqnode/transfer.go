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

func transferCommand() *cobra.Command {
	var c remote.Cluster
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
			return c.AtLeader(ctx, group, func(leader cluster.NodeID, client *admin.Client) error {
				began := time.Now()
				req := admin.TransferRequest{To: cluster.NodeID(to), Group: group}
				st, err := client.Transfer(ctx, req)
				if err != nil {
					return err
				}
				g := remote.GroupIn(st, group)
				fmt.Fprintf(cmd.OutOrStdout(), "%s leads in term %d, handed over by %s in %s\n",
					g.Leader, g.Term, leader, time.Since(began).Round(time.Millisecond))
				return nil
			})
		},
	}
	c.Register(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "node that is to lead (default: the best follower)")
	f.StringVar(&group, "group", cluster.DefaultGroup, "election whose leader is meant")
	f.DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for the new leader")
	return cmd
}

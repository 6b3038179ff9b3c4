package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

// leaderOptions are the flags of commands that ask the leader of an election for something.
type leaderOptions struct {
	remote.Cluster
	group   string
	timeout time.Duration
}

// register adds the flags to cmd, whose first arguments are names of nodes. It then asks the
// leader and prints what ask returns: the status of the node that led, or a sentence.
func (o *leaderOptions) register(
	cmd *cobra.Command, arguments int, wait string,
	ask func(ctx context.Context, leader cluster.NodeID, client *admin.Client, args []string) (
		st cluster.Status, done string, err error),
) {
	cmd.Flags().StringVar(&o.group, "group", cluster.DefaultGroup, "election whose leader is meant")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Second, "longest wait for "+wait)
	reach(cmd, &o.Cluster, arguments)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
		defer cancel()
		return o.AtLeader(ctx, o.group, func(leader cluster.NodeID, client *admin.Client) error {
			st, done, err := ask(ctx, leader, client, args)
			switch {
			case err != nil:
				return err
			case o.JSON:
				return console.JSON(cmd.OutOrStdout(), st)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
			return err
		})
	}
}

func transferCommand() *cobra.Command {
	var o leaderOptions
	var to string
	cmd := &cobra.Command{
		Use:     "transfer [NODE]",
		Short:   "Hand leadership over to another node",
		Example: "  bmqnode transfer n2\n  bmqnode transfer   # to the best follower",
		Args: usageArgs(func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.Flags().Changed("to") {
				return errors.New("say NODE or --to, not both")
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "the same as NODE (default: the best follower)")
	o.register(cmd, 1, "the new leader", func(
		ctx context.Context, leader cluster.NodeID, client *admin.Client, args []string,
	) (cluster.Status, string, error) {
		if len(args) > 0 {
			to = args[0]
		}
		began := time.Now()
		req := admin.TransferRequest{To: cluster.NodeID(to), Group: o.group}
		st, err := client.Transfer(ctx, req)
		g := admin.GroupIn(st, o.group)
		return st, fmt.Sprintf("%s leads in term %d, handed over by %s in %s",
			g.Leader, g.Term, leader, time.Since(began).Round(time.Millisecond)), err
	})
	return cmd
}

func stepDownCommand() *cobra.Command {
	var o leaderOptions
	var rest time.Duration
	cmd := &cobra.Command{
		Use:   "step-down",
		Short: "Let the leader step down, and not stand again for a while",
		Long: "Let the leader step down in favor of the best follower, and not stand again for\n" +
			"a while: before its machine is worked on, for example. If no follower can take\n" +
			"over there is no leader afterwards; 'bmqnode transfer' then keeps the old one.",
		Example: "  bmqnode step-down --for 10m",
		Args:    usageArgs(noArgs),
	}
	o.register(cmd, 0, "its work to stop", func(
		ctx context.Context, leader cluster.NodeID, client *admin.Client, _ []string,
	) (cluster.Status, string, error) {
		req := admin.StepDownRequest{For: rest.String(), Group: o.group}
		st, err := client.StepDown(ctx, req)
		if err != nil || o.JSON {
			return st, "", err
		}
		next := "no successor yet"
		if g := successor(ctx, client, o.group, leader); g.Leader != "" {
			next = fmt.Sprintf("%s leads in term %d", g.Leader, g.Term)
		}
		return st, fmt.Sprintf("%s leads no more; %s", leader, next), nil
	})
	cmd.Flags().DurationVar(&rest, "for", 30*time.Second,
		"how long it is not to stand again, at most 24h")
	return cmd
}

// successor waits shortly until the node that led an election follows another leader, and
// returns its view of the election; its Leader is "" if there is none by then.
func successor(
	ctx context.Context, client *admin.Client, group string, old cluster.NodeID,
) cluster.GroupStatus {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for {
		st, err := client.Status(ctx)
		g := admin.GroupIn(st, group)
		if err == nil && g.Leader != "" && g.Leader != old {
			return g
		}
		select {
		case <-ctx.Done():
			return cluster.GroupStatus{}
		case <-time.After(50 * time.Millisecond):
		}
	}
}

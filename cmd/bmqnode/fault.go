package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func faultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Cut and heal links between nodes that run with --rehearsal",
		Args:  usageArgs(noSuchCommand),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	add := func(
		nodes int, use, short, example string,
		do func(context.Context, *remote.Cluster, []string) (string, []remote.Answer, error),
	) {
		var c remote.Cluster
		sub := &cobra.Command{
			Use: use, Short: short, Example: "  bmqnode fault " + example,
			Args: usageArgs(cobra.ExactArgs(nodes)),
			RunE: func(cmd *cobra.Command, args []string) error {
				done, told, err := do(cmd.Context(), &c, args)
				switch {
				case c.JSON:
					return printTold(cmd.OutOrStdout(), &c, told, err, nil)
				case err == nil:
					fmt.Fprintln(cmd.OutOrStdout(), done)
				}
				return err
			},
		}
		reach(sub, &c, nodes)
		cmd.AddCommand(sub)
	}
	add(2, "cut NODE NODE", "Cut the link between two nodes, in both directions", "cut n1 n2",
		func(ctx context.Context, c *remote.Cluster, n []string) (string, []remote.Answer, error) {
			told, err := c.Cut(ctx, cluster.NodeID(n[0]), cluster.NodeID(n[1]))
			return n[0] + " and " + n[1] + " do not hear each other", told, err
		})
	add(1, "isolate NODE", "Cut every link of a node, in both directions", "isolate n3",
		func(ctx context.Context, c *remote.Cluster, n []string) (string, []remote.Answer, error) {
			told, err := c.Isolate(ctx, cluster.NodeID(n[0]))
			return n[0] + " hears nobody and nobody hears it", told, err
		})
	add(0, "heal", "Heal every link", "heal",
		func(ctx context.Context, c *remote.Cluster, _ []string) (string, []remote.Answer, error) {
			told, err := c.Heal(ctx)
			return "every link is healed", told, err
		})
	return cmd
}

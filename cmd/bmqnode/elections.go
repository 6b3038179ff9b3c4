package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

func electionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "elections"}
	cmd.AddCommand(
		electionsListCommand(),
		electionCommand("open NAME", "takes part in", (*ask.Cluster).OpenElection),
		electionCommand("close NAME", "takes no part any more in", (*ask.Cluster).CloseElection),
	)
	return cmd
}

func electionsListCommand() *cobra.Command {
	var prefix, after string
	var limit int
	cmd := &cobra.Command{Use: "list"}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only those whose names begin so")
	cmd.Flags().StringVar(&after, "after", "", "only those whose names come after this one")
	cmd.Flags().IntVar(&limit, "limit", 100, "most elections that are listed (0: all)")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		if limit < 0 {
			return config.Usage(fmt.Errorf("--limit is %d, but must be 0 or more", limit))
		}
		if limit == 0 {
			limit = math.MaxInt
		}
		node, found, err := c.Elections(cmd.Context(), prefix, after, limit)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), found)
		}
		lines := ask.ElectionsTable(found.Elections)
		if found.Next != "" {
			lines = append(lines, fmt.Sprintf("%s has more: --after %q", node, found.Next))
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
		return err
	})
}

// electionCommand is a command that opens or closes an election on all nodes.
func electionCommand(use, done string,
	do func(*ask.Cluster, context.Context, string) ([]ask.Answer, error),
) *cobra.Command {
	cmd := &cobra.Command{Use: use, Args: cobra.ExactArgs(1)}
	telling(cmd, 0, func(ctx context.Context, c *ask.Cluster, args []string) ([]ask.Answer, error) {
		return do(c, ctx, args[0])
	}, func(a ask.Answer, args []string) string {
		return fmt.Sprintf("%s %s election %s", a.Node, done, args[0])
	})
	return cmd
}

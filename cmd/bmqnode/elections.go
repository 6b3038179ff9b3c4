package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

func electionsCommand() *cobra.Command {
	tellAll := func(use, done string, req func(name string) admin.Request) *cobra.Command {
		cmd := &cobra.Command{Use: use, Args: cobra.ExactArgs(1)}
		return telling(cmd, 0, func(ctx context.Context, c *ask.Cluster, args []string) (
			[]ask.Answer, error,
		) {
			return c.TellAll(ctx, req(args[0]))
		}, func(a ask.Answer, args []string) string {
			return fmt.Sprintf("%s %s election %s", a.Node, done, args[0])
		})
	}
	cmd := &cobra.Command{Use: "elections"}
	cmd.AddCommand(
		electionsListCommand(),
		tellAll("open NAME", "takes part in",
			func(name string) admin.Request { return admin.OpenRequest{Name: name} }),
		tellAll("close NAME", "takes no part any more in",
			func(name string) admin.Request { return admin.CloseRequest{Group: name} }),
	)
	return cmd
}

func electionsListCommand() *cobra.Command {
	var sel cluster.Selection
	cmd := &cobra.Command{Use: "list"}
	cmd.Flags().StringVar(&sel.Prefix, "prefix", "", "only those whose names begin so")
	cmd.Flags().StringVar(&sel.After, "after", "", "only those whose names come after this one")
	cmd.Flags().IntVar(&sel.Limit, "limit", 100, "most elections that are listed, up to 1000")
	return asking(cmd, 0, func(cmd *cobra.Command, c *ask.Cluster, _ []string) error {
		node, client, err := c.AtLeader(cmd.Context(), cluster.DefaultGroup, true)
		if client == nil {
			return err
		}
		page, err := client.Elections(cmd.Context(), sel)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return console.JSON(cmd.OutOrStdout(), page)
		}
		rows := []string{"ELECTION\tLEADER\tTERM\tROLE OF " + string(node)}
		for _, g := range page.Elections {
			rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t%s", g.Group,
				cmp.Or(string(g.Leader), "-"), g.Term, g.Role))
		}
		lines := console.Columns(rows)
		if page.Next != "" {
			lines = append(lines, fmt.Sprintf("there are more: --after %q", page.Next))
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
		return err
	})
}

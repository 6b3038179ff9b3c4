package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/ask"
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
		tellAll("open NAME", "takes part in",
			func(name string) admin.Request { return admin.OpenRequest{Name: name} }),
		tellAll("close NAME", "takes no part any more in",
			func(name string) admin.Request { return admin.CloseRequest{Group: name} }),
	)
	return cmd
}

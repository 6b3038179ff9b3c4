package main

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/shell"
)

func meshCommand() *cobra.Command {
	c := shell.Config{Command: ownCommand}
	cmd := &cobra.Command{
		Use: "mesh",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Check(); err != nil {
				return err
			}
			c.In, c.Out = cmd.InOrStdin(), cmd.OutOrStdout()
			return shell.Run(cmd.Context(), c)
		},
	}
	cmd.Flags().SortFlags = false
	c.Register(cmd.Flags())
	return cmd
}

func ownCommand(ctx context.Context, args ...string) (output string, err error) {
	cmd := root()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(ctx)
	return out.String(), err
}

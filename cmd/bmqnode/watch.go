package main

import (
	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func watchCommand() *cobra.Command {
	var c remote.Cluster
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print the transitions of every node as they happen, until Ctrl-C",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Watch(cmd.Context(), console.New(cmd.OutOrStdout()))
		},
	}
	c.Register(cmd.Flags())
	return cmd
}

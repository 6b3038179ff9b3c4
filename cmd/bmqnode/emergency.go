package main

import (
	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/emergency"
)

func emergencyCommand() *cobra.Command {
	var o emergency.Options
	cmd := &cobra.Command{
		Use: "emergency",
		RunE: func(cmd *cobra.Command, _ []string) error {
			finishUnread()
			return o.Run(cmd.OutOrStdout())
		},
	}
	cmd.Flags().SortFlags = false
	o.Register(cmd.Flags())
	return cmd
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/lab/laboratory"
)

func labCommand() *cobra.Command {
	var o laboratory.Options
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Compare election algorithms under the same faults, simulated",
		Args:  usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := o.Check(); err != nil {
				return config.Usage(err)
			}
			return laboratory.Run(cmd.Context(), o)
		},
	}
	o.Register(cmd.Flags())
	return cmd
}

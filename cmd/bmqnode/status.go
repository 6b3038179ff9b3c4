package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func statusCommand() *cobra.Command {
	var c remote.Cluster
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show every node: role, leader, term, LSN, lease, links",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answers, err := c.All(cmd.Context())
			if err != nil {
				return err
			}
			slices.SortFunc(answers, func(a, b remote.Answer) int {
				return strings.Compare(string(a.Node), string(b.Node))
			})
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(answers)
			}
			return remote.PrintStatus(cmd.OutOrStdout(), answers)
		},
	}
	c.Register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything, as JSON")
	return cmd
}

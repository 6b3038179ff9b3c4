package main

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/daemon/console"
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
			slices.SortFunc(answers, func(a, b remote.Answer) int { return cmp.Compare(a.Node, b.Node) })
			if asJSON {
				return printJSON(cmd.OutOrStdout(), answers)
			}
			return remote.PrintStatus(cmd.OutOrStdout(), answers)
		},
	}
	c.Register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything, as JSON")
	return cmd
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

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

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func statusCommand() *cobra.Command {
	var c remote.Cluster
	var group string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show every node: role, leader, term, LSN, lease, links",
		Example: "  bmqnode status --group jobs",
		Args:    usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answers, err := c.All(cmd.Context())
			if err != nil {
				return err
			}
			slices.SortFunc(answers, func(a, b remote.Answer) int { return cmp.Compare(a.Node, b.Node) })
			if answers, err = remote.OfGroup(answers, group); err != nil {
				return err
			}
			if c.JSON {
				return console.JSON(cmd.OutOrStdout(), answers)
			}
			return remote.PrintStatus(cmd.OutOrStdout(), answers)
		},
	}
	cmd.Flags().StringVar(&group, "group", "",
		"show this election alone (default: in the table "+cluster.DefaultGroup+", as JSON all)")
	reach(cmd, &c, 0)
	return cmd
}

// printTold prints the nodes that did what they were told, a line each, and returns why
// others did not.
func printTold(
	w io.Writer, c *remote.Cluster, told []remote.Answer, err error, line func(remote.Answer) string,
) error {
	if c.JSON && len(told) > 0 {
		return errors.Join(err, console.JSON(w, told))
	}
	for _, a := range told {
		fmt.Fprintln(w, line(a))
	}
	return err
}

func watchCommand() *cobra.Command {
	var c remote.Cluster
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print every node's transitions as they happen, until Ctrl-C",
		Long: "Print the transitions of every node as they happen, until Ctrl-C. With --json a\n" +
			"line is an Event, a Reset where events are gone, or an Answer with an error from\n" +
			"a node that was lost, and without one when it is back.",
		Example: "  bmqnode watch --json | jq -r 'select(.to == \"LEADER\").node'",
		Args:    usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Watch(cmd.Context(), cmd.OutOrStdout())
		},
	}
	reach(cmd, &c, 0)
	return cmd
}

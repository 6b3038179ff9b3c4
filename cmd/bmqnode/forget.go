package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func forgetCommand() *cobra.Command {
	var c remote.Cluster
	var here bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "forget NODE",
		Short: "Let a new machine take the name of one that is gone for good",
		Long: "Let the members take in the next process of a node's name, whatever its data\n" +
			"directory: for a machine that was lost with its disk and whose end the others\n" +
			"could not see. All members are asked first, and nothing is done if one of them\n" +
			"has a link to that process. Make sure that the old process is gone: two\n" +
			"processes of one name can vote twice.",
		Example: "  bmqnode forget n3",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			told, err := c.Forget(ctx, cluster.NodeID(args[0]), here)
			if errors.Is(err, remote.ErrNothingToForget) { // as after a death that was proven
				fmt.Fprintln(cmd.ErrOrStderr(), err)
				return nil
			}
			return printTold(cmd.OutOrStdout(), &c, told, err, func(a remote.Answer) string {
				return fmt.Sprintf("%s takes in the next process that is called %s", a.Node, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "only at the node that answers at --admin, if the "+
		"others cannot be asked from this machine")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for all answers")
	reach(cmd, &c, 1)
	return cmd
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/remote"
)

func historyCommand() *cobra.Command {
	var c remote.Cluster
	var group string
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show past leaderships, and why they ended",
		Long: "Show past leaderships: who, in which term, from, to, and why each ended. A node\n" +
			"keeps the newest 256 KiB of what it has seen on disk; this is what all that\n" +
			"answer know together. SAID BY is whose word the reason is: the leader's own if\n" +
			"it can be asked, else that of a node that saw the end, which may call a stop a\n" +
			"TRANSFERRED or LEADER_CEDED. Between TO and the next FROM nobody led.",
		Example: "  bmqnode history --group jobs\n" +
			"  bmqnode history --json | jq '.leaderships[] | select(.term > 7)'",
		Args: usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, answers, err := c.History(cmd.Context(), group)
			if err != nil {
				return err
			}
			for _, a := range answers {
				if a.Error != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "without %s: %s\n", a.Node, a.Error)
				}
			}
			if c.JSON {
				all := append([]recording.Leadership{}, all...) // a list also if there is none
				return console.JSON(cmd.OutOrStdout(), admin.History{Leaderships: all})
			}
			return remote.PrintHistory(cmd.OutOrStdout(), all)
		},
	}
	cmd.Flags().StringVar(&group, "group", cluster.DefaultGroup, "the election that is meant")
	reach(cmd, &c, 0)
	return cmd
}

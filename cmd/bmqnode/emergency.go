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
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.File, "config", "", "YAML file of the node's options, in place of the next three")
	f.StringVar(&o.Dir, "data-dir", "", "directory of the durable state of the stopped node")
	f.StringSliceVar(&o.Voters, "voters", nil, "the voters as they are configured")
	f.StringVar(&o.Node, "node", "", "name of the node; refuses the directory of another one")
	f.StringSliceVar(&o.Lost, "lost", nil, "the voters that will never come back")
	f.StringVar(&o.Reason, "reason", "", "kept on record")
	f.StringVar(&o.Confirm, "confirm", "", "name of the cluster: yes, do it")
	f.BoolVar(&o.Retire, "retire", false,
		"the directory is that of a lost voter: let it never start again")
	f.StringVar(&o.Readmit, "readmit", "",
		"a lost voter that was replaced and is to vote again; one at a time")
	f.BoolVar(&o.Show, "show", false, "show what is on record")
	return cmd
}

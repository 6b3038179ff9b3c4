package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/lab/incident/record"
)

func recordIncidentCommand() *cobra.Command {
	var o record.Options
	cmd := &cobra.Command{
		Use:   "record-incident",
		Short: "Make a scenario of what happened lately, and replay it",
		Long: "Collect what the nodes recorded, find out what went wrong, and write a scenario\n" +
			"that shows it again: incident.yaml for 'bmqnode replay', incident.html for a\n" +
			"browser. Cuts and pauses follow from what the nodes saw of each other. The file\n" +
			"is written for the simulator: with --live, real processes may elect others.\n\n" +
			"A node that does not answer: copy its data directory's recording.log* and name\n" +
			"the folder. Exit status: 1 if the simulator shows other leaders, reasons or\n" +
			"ends.",
		Example: "  bmqnode record-incident --since 2h -o /tmp/last-night\n" +
			"  bmqnode record-incident --from '2026-01-02 02:10' --to '2026-01-02 02:20'",
		Args: usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.Group, "group", cluster.DefaultGroup, "the election that is meant")
	reach(cmd, &o.Cluster, 0) // before --to, which takes no node here
	f := cmd.Flags()
	f.DurationVar(&o.Since, "since", 30*time.Minute, "how far back to look")
	f.StringVar(&o.From, "from", "", "begin, instead of --since: RFC 3339, or '2006-01-02 15:04' here")
	f.StringVar(&o.To, "to", "", "end, likewise (default: now)")
	f.StringSliceVar(&o.Dirs, "data-dir", nil,
		"data directory of a node that does not answer; may be repeated")
	f.StringVarP(&o.Output, "output", "o", ".", "folder to write to")
	f.IntVar(&o.Seeds, "seeds", 1000, "random choices of the simulator to try, at most")
	f.DurationVar(&o.Patience, "timeout", 30*time.Second, "longest search for one that fits")
	return cmd
}

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/lab/compare"
	"github.com/bmqelect/bmqelect/internal/lab/incident/record"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

type replayOptions struct {
	compare.ReplayOptions
	seed            uint64
	scouting, check bool
	without         []string
}

func replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:  "replay PATH...",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *replayOptions) run(cmd *cobra.Command, paths []string) error {
	o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if cmd.Flags().Changed("seed") {
		o.Seed = &o.seed
	}
	if cmd.Flags().Changed("scouting") {
		o.Scouting = &o.scouting
	}
	for _, w := range o.without {
		o.Reduced.Without = append(o.Reduced.Without, scenario.NodeID(w))
	}
	if err := o.Check(); err != nil {
		return config.Usage(err)
	}
	b, err := compare.Load(o.ReplayOptions, paths...)
	if err != nil {
		return config.Usage(err)
	}
	if o.check {
		fmt.Fprintln(o.Out, console.Count(b.Files(), "file"), "without a mistake")
		return nil
	}
	return b.Play(cmd.Context())
}

func (o *replayOptions) register(f *pflag.FlagSet) {
	f.SortFlags = false
	o.Register(f)
	f.BoolVar(&o.check, "check", false, "only check the files")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the first run (default: the file's, or 1)")
	f.BoolVar(&o.scouting, "scouting", true,
		"overrides the file; =false is the algorithm before its extension")
	f.StringSliceVar(&o.without, "without", nil, "leave these nodes out")
}

func recordIncidentCommand() *cobra.Command {
	var o record.Options
	cmd := &cobra.Command{
		Use: "record-incident",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.Group, "group", cluster.DefaultGroup, "the election that is meant")
	reach(cmd, &o.Cluster, 0) // before --to, which is no node here
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

func labCommand() *cobra.Command {
	var o compare.LabOptions
	cmd := &cobra.Command{
		Use: "lab",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.Err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := o.Check(); err != nil {
				return config.Usage(err)
			}
			return compare.Lab(cmd.Context(), o)
		},
	}
	o.Register(cmd.Flags())
	return cmd
}

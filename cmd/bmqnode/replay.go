package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/internal/daemon/config"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/lab/batch"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// replayOptions are the flags of `replay`.
type replayOptions struct {
	batch.Options
	seed            uint64
	scouting, check bool
	without         []string
}

func replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay PATH...",
		Short: "Play partition scenarios, simulated or real, and judge them",
		Long: "Play scenario files, or all in a folder. Simulated unless --live: virtual time,\n" +
			"and the same seed gives the same run everywhere. Exit status: 0 if every\n" +
			"expectation and invariant held, 1 if not, 2 if a file is wrong.",
		Example: "  bmqnode replay testdata/scenarios\n" +
			"  bmqnode replay my.yaml --runs 1000\n" +
			"  bmqnode replay my.yaml -o my.html\n" +
			"  bmqnode replay my.yaml --compare\n" +
			"  bmqnode replay my.yaml --set elector.max_random_wait=1s --live",
		Args: usageArgs(cobra.MinimumNArgs(1)),
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
	b, err := batch.Load(o.Options, paths...)
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

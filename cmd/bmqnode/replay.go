package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// replayJob is the command `replay` at work.
type replayJob struct {
	live, check, compare bool
	seed                 uint64
	runs, jobs           int
	scouting             bool
	set, variants        []string
	format, output       string
	reduced              replay.Reduced
	without              []string
	basePort             int

	cmd   *cobra.Command
	files []string
}

var replayFormats = map[string]func(io.Writer, []verdict.Run, report.TextOptions) error{
	"text": report.Text,
	"json": func(w io.Writer, runs []verdict.Run, _ report.TextOptions) error { return report.JSON(w, runs) },
	"svg":  func(w io.Writer, runs []verdict.Run, _ report.TextOptions) error { return report.SVG(w, runs) },
	"html": func(w io.Writer, runs []verdict.Run, _ report.TextOptions) error { return report.HTML(w, runs) },
}

// errUnmet says that a scenario did not go as its file expects. The report has
// said so already.
var errUnmet = errors.New("not everything held")

func replayCommand() *cobra.Command {
	j := &replayJob{}
	cmd := &cobra.Command{
		Use:   "replay PATH...",
		Short: "Play partition scenarios, simulated or on real processes, and judge them",
		Long: "Play scenario files, or all in a folder. Simulated unless --live: virtual time, and the\n" +
			"same seed gives the same run everywhere. Exit status: 0 if every expectation and\n" +
			"invariant held, 1 if not, 2 if a file is wrong.",
		Example: "  bmqnode replay testdata/scenarios\n" +
			"  bmqnode replay my.yaml --runs 1000\n" +
			"  bmqnode replay my.yaml --format html -o my.html\n" +
			"  bmqnode replay my.yaml --compare\n" +
			"  bmqnode replay my.yaml --set elector.max_random_wait=1s --live",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.cmd = cmd
			return j.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&j.live, "live", false, "play on real processes on loopback, in real time")
	f.BoolVar(&j.check, "check", false, "only check the files")
	f.Uint64Var(&j.seed, "seed", 0, "seed of the first run (default: the file's, or 1)")
	f.IntVar(&j.runs, "runs", 1, "runs under consecutive seeds, each of which must hold")
	f.BoolVar(&j.scouting, "scouting", true, "overrides the file; =false is the algorithm before its extension")
	f.StringArrayVar(&j.set, "set", nil, "override a setting of the file, as in elector.lease=2s; may be repeated")
	f.BoolVar(&j.compare, "compare", false, "play variants side by side; says what differs and judges nothing")
	f.StringArrayVar(&j.variants, "variant", []string{"scouting=true", "scouting=false"}, "a variant for --compare: settings as for --set, separated by commas")
	f.StringVar(&j.format, "format", "text", "text, json (one event per line), html (one file, opens anywhere) or svg")
	f.StringVarP(&j.output, "output", "o", "", "write there instead of the standard output; a folder for html or svg of several files")
	f.IntSliceVar(&j.reduced.Drop, "drop", nil, "leave these steps of the timeline out, counted from 1")
	f.StringSliceVar(&j.without, "without", nil, "leave these nodes out")
	f.DurationVar(&j.reduced.Until, "until", 0, "end the run then (0: the file's duration)")
	f.IntVar(&j.jobs, "jobs", 4, "files played at the same time")
	f.IntVar(&j.basePort, "base-port", 20_400, "first port to try with --live")
	return cmd
}

func (j *replayJob) run(ctx context.Context, paths []string) error {
	if err := j.checkFlags(); err != nil {
		return usageError{err}
	}
	var err error
	if j.files, err = scenario.Find(paths...); err != nil {
		return usageError{err}
	}
	jobs, err := j.load()
	if err != nil {
		return usageError{err}
	}
	switch {
	case j.check:
		fmt.Fprintf(j.cmd.OutOrStdout(), "%d files are right\n", len(j.files))
		return nil
	case j.runs > 1:
		return j.manyRuns(ctx, jobs)
	}
	return j.oneRunEach(ctx, jobs)
}

func (j *replayJob) checkFlags() error {
	var errs []error
	if _, ok := replayFormats[j.format]; !ok {
		errs = append(errs, fmt.Errorf("--format is %q, but must be text, json, html or svg", j.format))
	}
	if j.runs < 1 || j.runs > 1_000_000 {
		errs = append(errs, fmt.Errorf("--runs is %d, but must be 1 to 1000000", j.runs))
	}
	if j.jobs < 1 || j.jobs > 32 {
		errs = append(errs, fmt.Errorf("--jobs is %d, but must be 1 to 32", j.jobs))
	}
	if j.runs > 1 && (j.live || j.compare || j.format != "text") {
		errs = append(errs, errors.New("--runs goes with the simulator and --format text, not with --live, --compare or another format"))
	}
	if j.live && j.cmd.Flags().Changed("seed") {
		errs = append(errs, errors.New("--seed has no meaning with --live: real networks do not repeat themselves"))
	}
	for _, w := range j.without {
		j.reduced.Without = append(j.reduced.Without, scenario.NodeID(w))
	}
	return errors.Join(errs...)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/replay"
	"github.com/bmqelect/bmqelect/internal/report"
	"github.com/bmqelect/bmqelect/internal/scenario"
)

// replayJob is the command `replay` at work.
type replayJob struct {
	live, check, compare bool
	seed                 uint64
	runs                 int
	scouting             bool
	set, variants        []string
	format, output       string
	reduced              replay.Reduced
	without              []string
	basePort             int

	cmd   *cobra.Command
	files []string
}

var replayFormats = map[string]func(io.Writer, []report.Run, report.TextOptions) error{
	"text": report.Text,
	"json": func(w io.Writer, runs []report.Run, _ report.TextOptions) error { return report.JSON(w, runs) },
	"svg":  func(w io.Writer, runs []report.Run, _ report.TextOptions) error { return report.SVG(w, runs) },
	"html": func(w io.Writer, runs []report.Run, _ report.TextOptions) error { return report.HTML(w, runs) },
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

// job is one scenario, in one or several variants.
type job struct {
	variants []*scenario.Scenario
	names    []string // of the variants; "" for the only one
}

// load reads every file in every variant; the error names all that is wrong.
func (j *replayJob) load() (jobs []job, err error) {
	common, err := j.overrides()
	if err != nil {
		return nil, err
	}
	variants := []string{""}
	if j.compare {
		variants = j.variants
	}
	var errs []error
	for _, file := range j.files {
		var it job
		for _, v := range variants {
			set, err := parseOverrides(v)
			if err != nil {
				return nil, err
			}
			sc, err := scenario.Load(file, append(slices.Clone(common), set...)...)
			if err != nil {
				errs = append(errs, err)
				break
			}
			it.variants, it.names = append(it.variants, j.reduced.Apply(sc)), append(it.names, v)
		}
		jobs = append(jobs, it)
	}
	return jobs, errors.Join(errs...)
}

func (j *replayJob) overrides() ([]scenario.Override, error) {
	set, err := parseOverrides(strings.Join(j.set, ","))
	if j.cmd.Flags().Changed("scouting") {
		set = append(set, scenario.Override{Key: "scouting", Value: fmt.Sprint(j.scouting)})
	}
	return set, err
}

func parseOverrides(list string) (set []scenario.Override, err error) {
	for text := range strings.SplitSeq(list, ",") {
		if text == "" {
			continue
		}
		o, err := scenario.ParseOverride(text)
		if err != nil {
			return nil, err
		}
		set = append(set, o)
	}
	return set, nil
}

// play plays one variant once.
func (j *replayJob) play(ctx context.Context, sc *scenario.Scenario, name string) (report.Run, error) {
	var run report.Run
	var err error
	if j.live {
		self, exeErr := os.Executable()
		if exeErr != nil {
			return run, exeErr
		}
		run, err = replay.Live(ctx, sc, replay.LiveOptions{Binary: self, BasePort: j.basePort})
	} else {
		run, err = replay.Simulate(sc, replay.Options{Seed: j.seedOf(sc), Arrows: true})
	}
	if err == nil {
		run.History.Variant = name
	}
	return run, err
}

func (j *replayJob) seedOf(sc *scenario.Scenario) uint64 {
	if j.cmd.Flags().Changed("seed") {
		return j.seed
	}
	return sc.Seed
}

// oneRunEach plays every scenario once and shows it.
func (j *replayJob) oneRunEach(ctx context.Context, jobs []job) error {
	var all []report.Run
	held := true
	for _, it := range jobs {
		var runs []report.Run
		for i, sc := range it.variants {
			if j.live && sc.SimulatedOnly != "" && len(jobs) > 1 {
				fmt.Fprintf(j.cmd.ErrOrStderr(), "%s is left out: %s\n", sc.File, sc.SimulatedOnly)
				continue
			}
			j.announce(sc)
			run, err := j.play(ctx, sc, it.names[i])
			if err != nil {
				return err
			}
			runs = append(runs, run)
			held = held && run.Held()
			j.shrink(sc, run)
		}
		all = append(all, runs...)
		if j.perFile() && len(runs) > 0 {
			if err := j.write(j.nameFor(it.variants[0].File), runs); err != nil {
				return err
			}
		}
	}
	if !j.perFile() {
		if err := j.writeAll(jobs, all); err != nil {
			return err
		}
	}
	if !held && !j.compare {
		return errUnmet
	}
	return nil
}

// announce says what is being played, since a live run takes its time.
func (j *replayJob) announce(sc *scenario.Scenario) {
	if j.live {
		fmt.Fprintf(j.cmd.ErrOrStderr(), "playing %s for %s\n", sc.Name, sc.Duration)
	}
}

// perFile reports whether each scenario gets a file of its own.
func (j *replayJob) perFile() bool {
	return len(j.files) > 1 && (j.format == "html" || j.format == "svg")
}

func (j *replayJob) nameFor(file string) string {
	base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	return filepath.Join(j.output, base+"."+j.format)
}

// writeAll shows one scenario in full, and several as a list of lines with the
// failed ones in full.
func (j *replayJob) writeAll(jobs []job, runs []report.Run) error {
	if len(jobs) == 1 || j.format == "json" {
		return j.write(j.output, runs)
	}
	return j.to(j.output, func(w io.Writer) error {
		for _, r := range runs {
			if !r.Held() && !j.compare {
				if err := report.Text(w, []report.Run{r}, j.textOptions()); err != nil {
					return err
				}
				fmt.Fprintln(w)
			}
		}
		return report.Summary(w, runs, j.textOptions())
	})
}

func (j *replayJob) write(path string, runs []report.Run) error {
	return j.to(path, func(w io.Writer) error { return replayFormats[j.format](w, runs, j.textOptions()) })
}

// to lets f write to a file, or to the standard output if path is "".
func (j *replayJob) to(path string, f func(io.Writer) error) (err error) {
	if path == "" {
		return f(j.cmd.OutOrStdout())
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return f(file)
}

// textOptions fit the terminal, or 100 columns where there is none.
func (j *replayJob) textOptions() report.TextOptions {
	o := report.TextOptions{Width: 100}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && j.output == "" {
		o.Width, o.Color = width, !color.NoColor
	}
	return o
}

// shrink looks for the least that breaks the same invariant, and says how to see
// it.
func (j *replayJob) shrink(sc *scenario.Scenario, run report.Run) {
	if len(run.History.Broken) == 0 || j.live {
		return
	}
	seed := run.History.Seed
	r, small, ok := replay.Shrink(sc, seed)
	if !ok {
		return
	}
	w := j.cmd.ErrOrStderr()
	fmt.Fprintf(w, "%s: an invariant is broken under seed %d; the least that breaks it:\n", sc.File, seed)
	for _, m := range small.History.Marks {
		fmt.Fprintf(w, "  %-8s %s\n", m.At, m.Text)
	}
	fmt.Fprintf(w, "%s\nreplay it with:\n  %s\n", small.History.Broken[0], reducedCommand(sc.File, seed, r))
}

// reducedCommand is what one types to see a reduced run.
func reducedCommand(file string, seed uint64, r replay.Reduced) string {
	cmd := fmt.Sprintf("bmqnode replay %s --seed %d", file, seed)
	if len(r.Drop) > 0 {
		cmd += " --drop " + strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Drop), " ", ","), "[]")
	}
	if len(r.Without) > 0 {
		cmd += " --without " + strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Without), " ", ","), "[]")
	}
	if r.Until > 0 {
		cmd += " --until " + r.Until.String()
	}
	return cmd
}

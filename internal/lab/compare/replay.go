package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/replay/live"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// portsPerRun keeps the ports of live runs at the same time apart.
const portsPerRun = 200

// ErrUnmet says that a scenario did not go as its file expects. The report says which one,
// and how.
var ErrUnmet = errors.New("not everything held")

// ReplayOptions say how to play scenario files. With Compare, each of Algorithms is a variant,
// in place of Variants. Output is a folder if there are several pictures.
type ReplayOptions struct {
	Options
	Live     bool     // on real processes, in real time
	Seed     *uint64  // of the first run; nil is that of the file
	Runs     int      // under consecutive seeds; all must hold
	Jobs     int      // files played at the same time
	Set      []string // settings that override the file's, as in elector.lease=2s
	Scouting *bool    // overrides the file; nil leaves it
	Compare  bool     // play Variants side by side, and judge nothing
	Variants []string // settings as in Set, separated by commas
	Format   string   // text, json, svg or html; "" follows from the ending of Output
	Reduced  replay.Reduced
	BasePort int // first to try for a live run
}

// Register adds the flags of the command `replay` that set an option as it is.
func (o *ReplayOptions) Register(f *pflag.FlagSet) {
	f.BoolVar(&o.Live, "live", false, "play on real processes on loopback, in real time")
	f.IntVar(&o.Runs, "runs", 1, "runs under consecutive seeds, each of which must hold")
	f.StringArrayVar(&o.Set, "set", nil,
		"override a setting of the file, as in elector.lease=2s; may be repeated")
	f.BoolVar(&o.Compare, "compare", false,
		"play variants side by side, to see what differs; exits with 0 whatever did not hold")
	f.StringArrayVar(&o.Variants, "variant", []string{"scouting=true", "scouting=false"},
		"a variant for --compare: settings as for --set, separated by commas")
	o.register(f, "play another election algorithm, or several with --compare",
		"write there instead of the standard output; a folder for html or svg of several files")
	f.StringVar(&o.Format, "format", "", "text, json (one event per line), html (one file, opens "+
		"anywhere) or svg (default: by the ending of --output, or else text)")
	f.IntSliceVar(&o.Reduced.Drop, "drop", nil,
		"leave these steps of the timeline out, counted from 1; expectations are not judged then")
	f.DurationVar(&o.Reduced.Until, "until", 0, "end the run then (0: the file's duration)")
	f.IntVar(&o.Jobs, "jobs", 4, "files played at the same time")
	f.IntVar(&o.BasePort, "base-port", 20_400, "first port to try with --live")
}

// Check names everything that is wrong, by the flags of the command `replay`, and chooses Format.
func (o *ReplayOptions) Check() error {
	_, err := o.algorithms()
	wrong := mistakes{o.chooseFormat(), err}
	wrong.want(o.Runs >= 1 && o.Runs <= 1_000_000, "--runs is %d, but must be 1 to 1000000", o.Runs)
	wrong.want(o.Jobs >= 1 && o.Jobs <= 32, "--jobs is %d, but must be 1 to 32", o.Jobs)
	wrong.want(!o.Live || o.BasePort >= 1024 && o.BasePort <= 30_000,
		"--base-port is %d, but must be 1024 to 30000", o.BasePort)
	wrong.want(o.Runs <= 1 || !o.Live && !o.Compare && o.Format == "text", "--runs goes with the "+
		"simulator and --format text, not with --live, --compare or another format")
	wrong.want(len(o.Algorithms) <= 1 || o.Compare, "--algorithm names several: they are played beside "+
		"each other, with --compare")
	wrong.want(!o.Live || len(o.Algorithms) == 0,
		"--algorithm goes with the simulator, not with --live: real processes run this elector only")
	wrong.want(!o.Live || o.Seed == nil,
		"--seed has no meaning with --live: real networks do not repeat themselves")
	return errors.Join(wrong...)
}

// Replay is a set of scenarios that were read.
type Replay struct {
	ReplayOptions
	jobs [][]variant // of each file
}

// variant is one way to play a scenario.
type variant struct {
	*scenario.Scenario
	name      string // "" for the only one
	algorithm algorithm.Algorithm
}

// Load reads every file, or those in a folder, in every variant. The error names all that
// is wrong.
func Load(o ReplayOptions, paths ...string) (*Replay, error) {
	files, err := scenario.Find(paths...)
	if err != nil {
		return nil, err
	}
	algorithms, err := o.algorithms(ours.Elector)
	if err != nil {
		return nil, err
	}
	common := overrides(strings.Join(o.Set, ","))
	if o.Scouting != nil {
		common = append(common, fmt.Sprintf("scouting=%t", *o.Scouting))
	}
	settings := []string{""}
	if o.Compare && len(o.Algorithms) == 0 {
		settings = o.Variants
	}
	b := &Replay{ReplayOptions: o}
	var errs []error
	for _, file := range files {
		var job []variant
		for i := range max(len(settings), len(algorithms)) {
			v := variant{name: settings[i%len(settings)], algorithm: algorithms[i%len(algorithms)]}
			sc, err := scenario.Load(file, append(slices.Clone(common), overrides(v.name)...)...)
			if err == nil {
				err = o.leavesOut(sc)
			}
			if err != nil {
				errs = append(errs, err)
				break
			}
			if len(o.Algorithms) > 0 {
				v.name = v.algorithm.Name
			}
			if written, _ := scenario.Load(file); o.Compare && !reflect.DeepEqual(sc, written) {
				sc.About = "" // is true of what is written
			}
			if o.Seed != nil {
				sc.Seed = *o.Seed
			}
			v.Scenario = o.Reduced.Apply(sc)
			job = append(job, v)
		}
		b.jobs = append(b.jobs, job)
	}
	return b, errors.Join(errs...)
}

// leavesOut returns an error if the scenario does not have what is to be left out.
func (o *ReplayOptions) leavesOut(sc *scenario.Scenario) error {
	for _, n := range o.Reduced.Drop {
		if n < 1 || n > len(sc.Timeline) {
			return fmt.Errorf("%s: --drop is %d, but the steps of the timeline are 1 to %d",
				sc.File, n, len(sc.Timeline))
		}
	}
	ids := namesOf(sc.Nodes, func(n scenario.Node) string { return string(n.ID) })
	for _, id := range o.Reduced.Without {
		if !slices.Contains(ids, string(id)) {
			return fmt.Errorf("%s: --without is %q, but the nodes are %s", sc.File, id,
				strings.Join(ids, ", "))
		}
	}
	return nil
}

// overrides splits a list of key=value.
func overrides(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// Files is the number of files.
func (b *Replay) Files() int { return len(b.jobs) }

// Play plays all and writes the reports. The error is ErrUnmet if an expectation or an
// invariant did not hold.
func (b *Replay) Play(ctx context.Context) error {
	if !b.Reduced.IsWhole() {
		fmt.Fprintln(b.Err, "expectations are not judged: only a part is played")
	}
	play := b.playOnce
	if b.Runs > 1 {
		play = b.spreadAll
	}
	held, err := play(ctx)
	if err == nil && !held {
		err = ErrUnmet
	}
	return err
}

// playOnce plays every scenario once, several at a time, and writes them in order.
func (b *Replay) playOnce(ctx context.Context) (held bool, err error) {
	results := make([][]verdict.Run, len(b.jobs))
	err = inParallel(ctx, b.Jobs, len(b.jobs), nil, func(ctx context.Context, worker, i int) error {
		for _, v := range b.jobs[i] {
			if err := b.playVariant(ctx, v, worker, &results[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, cmp.Or(ctx.Err(), err)
	}
	held = true
	for i, runs := range results {
		for v, run := range runs {
			held = held && run.Held()
			b.shrink(b.jobs[i][v], run)
		}
	}
	return held || b.Compare, b.write(results)
}

func (b *Replay) playVariant(
	ctx context.Context, v variant, worker int, runs *[]verdict.Run,
) error {
	if b.Live && v.SimulatedOnly != "" && len(b.jobs) > 1 {
		fmt.Fprintf(b.Err, "%s is left out: %s\n", v.File, v.SimulatedOnly)
		return nil
	}
	var run verdict.Run
	var err error
	if b.Live {
		run, err = b.playLive(ctx, v.Scenario, worker)
	} else {
		run, err = replay.Simulate(v.Scenario, replay.Options{
			Seed: v.Seed, Arrows: b.Format == "html" || b.Format == "json",
			Algorithm: v.algorithm,
		})
	}
	if err != nil {
		return err
	}
	run.History.Variant = v.name
	if v.algorithm.Name != ours.Elector.Name && !b.Compare {
		run.About = "Here " + v.name + " plays; expected is what bmqelect does."
	}
	*runs = append(*runs, run)
	return nil
}

func (b *Replay) playLive(
	ctx context.Context, sc *scenario.Scenario, worker int,
) (verdict.Run, error) {
	self, err := os.Executable()
	if err != nil {
		return verdict.Run{}, err
	}
	fmt.Fprintf(b.Err, "playing %s for %s\n", sc.Name, sc.Duration)
	run, err := live.Play(ctx, sc, live.Options{
		Binary: self, BasePort: b.BasePort + portsPerRun*worker,
	})
	if err != nil && ctx.Err() == nil && len(b.jobs) > 1 {
		// The others go on; this one is shown with its problem.
		return verdict.Run{History: &history.History{
			Scenario: sc.Name, Mode: "live", Duration: sc.Duration, Problems: []string{err.Error()},
		}}, nil
	}
	return run, err
}

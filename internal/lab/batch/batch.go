// Package batch plays scenario files: one or many, once or under many seeds, in one or
// several variants, simulated or on real processes. It writes their reports.
package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

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

// Options say how to play.
type Options struct {
	Live     bool     // on real processes, in real time
	Seed     *uint64  // of the first run; nil is that of the file
	Runs     int      // under consecutive seeds; all must hold
	Jobs     int      // files played at the same time
	Set      []string // settings that override the file's, as in elector.lease=2s
	Scouting *bool    // overrides the file; nil leaves it
	Compare  bool     // play Variants side by side, and judge nothing
	Variants []string // settings as in Set, separated by commas
	// Algorithms are the names of those that play in place of ours; with Compare, each of them
	// is a variant, in place of Variants.
	Algorithms []string
	Format     string // text, json, svg or html; "" follows from the ending of Output
	Output     string // a file, or a folder if there are several; "" is Out
	Reduced    replay.Reduced
	BasePort   int // first to try for a live run
	Out, Err   io.Writer
}

// Check names everything that is wrong, by the flags of the command `replay`, and chooses Format.
func (o *Options) Check() error {
	var errs []error
	want := func(ok bool, text string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(text, args...))
		}
	}
	if err := o.chooseFormat(); err != nil {
		errs = append(errs, err)
	}
	want(o.Runs >= 1 && o.Runs <= 1_000_000, "--runs is %d, but must be 1 to 1000000", o.Runs)
	want(o.Jobs >= 1 && o.Jobs <= 32, "--jobs is %d, but must be 1 to 32", o.Jobs)
	want(!o.Live || o.BasePort >= 1024 && o.BasePort <= 30_000,
		"--base-port is %d, but must be 1024 to 30000", o.BasePort)
	want(o.Runs <= 1 || !o.Live && !o.Compare && o.Format == "text", "--runs goes with the "+
		"simulator and --format text, not with --live, --compare or another format")
	want(len(o.Algorithms) <= 1 || o.Compare, "--algorithm is several names, but must be one, "+
		"or go with --compare")
	want(!o.Live || len(o.Algorithms) == 0,
		"--algorithm goes with the simulator, not with --live: real processes run this elector only")
	if _, err := replay.SelectAlgorithms(o.Algorithms...); err != nil {
		errs = append(errs, fmt.Errorf("--algorithm: %w", err))
	}
	want(!o.Live || o.Seed == nil,
		"--seed has no meaning with --live: real networks do not repeat themselves")
	return errors.Join(errs...)
}

// Batch is a set of scenarios that were read.
type Batch struct {
	Options
	jobs []job
}

// job is one scenario, in one or several variants.
type job struct {
	variants   []*scenario.Scenario
	names      []string              // of the variants; "" for the only one
	algorithms []algorithm.Algorithm // of the variants
}

// Load reads every file, or those in a folder, in every variant. The error names all that
// is wrong.
func Load(o Options, paths ...string) (*Batch, error) {
	files, err := scenario.Find(paths...)
	if err != nil {
		return nil, err
	}
	common := overrides(strings.Join(o.Set, ","))
	if o.Scouting != nil {
		common = append(common, fmt.Sprintf("scouting=%t", *o.Scouting))
	}
	variants, algorithms := []string{""}, []algorithm.Algorithm{ours.Elector}
	if o.Compare {
		variants = o.Variants
	}
	if len(o.Algorithms) > 0 {
		variants = []string{""}
		if algorithms, err = replay.SelectAlgorithms(o.Algorithms...); err != nil {
			return nil, err
		}
	}
	b := &Batch{Options: o}
	var errs []error
	for _, file := range files {
		var it job
		for i := range max(len(variants), len(algorithms)) {
			v, a := variants[i%len(variants)], algorithms[i%len(algorithms)]
			sc, err := scenario.Load(file, append(slices.Clone(common), overrides(v)...)...)
			if err == nil {
				err = o.leavesOut(sc)
			}
			if err != nil {
				errs = append(errs, err)
				break
			}
			if len(o.Algorithms) > 0 {
				v = a.Name
			}
			it.variants, it.names = append(it.variants, o.Reduced.Apply(sc)), append(it.names, v)
			it.algorithms = append(it.algorithms, a)
		}
		b.jobs = append(b.jobs, it)
	}
	return b, errors.Join(errs...)
}

// leavesOut returns an error if the scenario does not have what is to be left out.
func (o *Options) leavesOut(sc *scenario.Scenario) error {
	for _, n := range o.Reduced.Drop {
		if n < 1 || n > len(sc.Timeline) {
			return fmt.Errorf("%s: --drop is %d, but the steps of the timeline are 1 to %d",
				sc.File, n, len(sc.Timeline))
		}
	}
	var ids []string
	for _, n := range sc.Nodes {
		ids = append(ids, string(n.ID))
	}
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
	isEmpty := func(text string) bool { return text == "" }
	return slices.DeleteFunc(strings.Split(list, ","), isEmpty)
}

// Files is the number of files.
func (b *Batch) Files() int { return len(b.jobs) }

// Play plays all and writes the reports. The error is ErrUnmet if an expectation or an
// invariant did not hold.
func (b *Batch) Play(ctx context.Context) error {
	held, err := false, error(nil)
	if !b.Reduced.IsWhole() {
		fmt.Fprintln(b.Err, "expectations are not judged: only a part is played")
	}
	if b.Runs > 1 {
		held, err = b.spreadAll(ctx)
	} else {
		held, err = b.playOnce(ctx)
	}
	if err == nil && !held {
		err = ErrUnmet
	}
	return err
}

// playOnce plays every scenario once, several at a time, and writes them in order.
func (b *Batch) playOnce(ctx context.Context) (held bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results, errs := make([][]verdict.Run, len(b.jobs)), make([]error, len(b.jobs))
	places := make(chan int, b.Jobs) // they tell live runs at the same time apart
	for n := range b.Jobs {
		places <- n
	}
	var wg sync.WaitGroup
	for i, it := range b.jobs {
		place := <-places
		wg.Go(func() {
			if results[i], errs[i] = b.playJob(ctx, it, place); errs[i] != nil {
				cancel() // the others would only be thrown away
			}
			places <- place
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	held = true
	for i, runs := range results {
		for v, run := range runs {
			held = held && run.Held()
			b.shrink(b.jobs[i], v, run)
		}
	}
	return held || b.Compare, b.write(results)
}

func (b *Batch) playJob(ctx context.Context, it job, place int) (runs []verdict.Run, err error) {
	for i, sc := range it.variants {
		if b.Live && sc.SimulatedOnly != "" && len(b.jobs) > 1 {
			fmt.Fprintf(b.Err, "%s is left out: %s\n", sc.File, sc.SimulatedOnly)
			continue
		}
		if ctx.Err() != nil {
			return nil, nil // another one failed; it says why
		}
		var run verdict.Run
		if b.Live {
			run, err = b.playLive(ctx, sc, place)
		} else {
			run, err = replay.Simulate(sc, replay.Options{
				Seed: b.seedOf(sc), Arrows: true, Algorithm: it.algorithms[i],
			})
		}
		if err != nil {
			return nil, err
		}
		run.History.Variant = it.names[i]
		if it.algorithms[i].Name != ours.Elector.Name && !b.Compare {
			run.About += " Here " + it.names[i] + " plays; expected is what bmqelect does."
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func (b *Batch) playLive(
	ctx context.Context, sc *scenario.Scenario, place int,
) (verdict.Run, error) {
	self, err := os.Executable()
	if err != nil {
		return verdict.Run{}, err
	}
	fmt.Fprintf(b.Err, "playing %s for %s\n", sc.Name, sc.Duration)
	run, err := live.Play(ctx, sc, live.Options{
		Binary: self, BasePort: b.BasePort + portsPerRun*place,
	})
	if err != nil && ctx.Err() == nil && len(b.jobs) > 1 {
		// The others go on; this one is shown with its problem.
		return verdict.Run{History: &history.History{
			Scenario: sc.Name, Mode: "live", Duration: sc.Duration, Problems: []string{err.Error()},
		}}, nil
	}
	return run, err
}

func (b *Batch) seedOf(sc *scenario.Scenario) uint64 {
	if b.Seed != nil {
		return *b.Seed
	}
	return sc.Seed
}

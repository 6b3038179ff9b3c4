package compare

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// spreadAll plays every scenario under consecutive seeds, and shows how the figures are
// spread, and the first run that did not hold.
func (b *Replay) spreadAll(ctx context.Context) (held bool, err error) {
	held = true
	err = b.to(b.Output, func(w io.Writer) error {
		for _, variants := range b.jobs {
			ok, err := b.spread(ctx, w, variants[0])
			if err != nil {
				return err
			}
			held = held && ok
		}
		return nil
	})
	return held, err
}

// spread plays one scenario many times; it reports whether every run held.
func (b *Replay) spread(ctx context.Context, w io.Writer, v variant) (bool, error) {
	failed := make([]bool, b.Runs)
	all := make([]history.Summary, b.Runs)
	play := func(_ context.Context, _, i int) error {
		run, err := replay.Simulate(v.Scenario,
			replay.Options{Algorithm: v.algorithm, Seed: v.Seed + uint64(i)})
		if err == nil {
			failed[i], all[i] = !run.Held(), run.History.Summarize(0, run.History.Duration)
		}
		return err
	}
	show, clear := onTerminal(v.Name, b.Runs)
	err := inParallel(ctx, runtime.GOMAXPROCS(0), b.Runs, show, play)
	if clear(); err != nil {
		return false, err
	}
	unmet := slices.Index(failed, true)
	count := 0
	for _, f := range failed {
		if f {
			count++
		}
	}
	fmt.Fprintf(w, "%s: %d of %d runs held\n", v.Name, b.Runs-count, b.Runs)
	if err := report.Distribution(w, all, b.textOptions()); err != nil || unmet < 0 {
		return true, err
	}
	o := replay.Options{Algorithm: v.algorithm, Seed: v.Seed + uint64(unmet), Arrows: true}
	run, err := replay.Simulate(v.Scenario, o)
	if err != nil {
		return false, err
	}
	name := ""
	if len(b.Algorithms) > 0 {
		name = " --algorithm " + b.Algorithms[0]
	}
	fmt.Fprintf(w, "the first that did not: bmqnode replay %s --seed %d%s\n", v.File, o.Seed, name)
	if err := report.Text(w, []verdict.Run{run}, b.textOptions()); err != nil {
		return false, err
	}
	b.shrink(v, run)
	return false, nil
}

// onTerminal shows how far the runs are, if somebody looks: show replaces what it said before.
func onTerminal(name string, runs int) (show func(done int), clear func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil, func() {}
	}
	const clearLine = "\r\x1b[K"
	return func(done int) {
		if done%(runs/100+1) == 0 {
			fmt.Fprintf(os.Stderr, clearLine+"%s: %d of %d runs", name, done, runs)
		}
	}, func() { fmt.Fprint(os.Stderr, clearLine) }
}

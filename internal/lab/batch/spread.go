package batch

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// spreadAll plays every scenario under consecutive seeds, and shows how the figures are
// spread, and the first run that did not hold.
func (b *Batch) spreadAll(ctx context.Context) (held bool, err error) {
	held = true
	err = b.to(b.Output, func(w io.Writer) error {
		for _, it := range b.jobs {
			ok, err := b.spread(ctx, w, it)
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
func (b *Batch) spread(ctx context.Context, w io.Writer, it job) (bool, error) {
	sc, o := it.variants[0], replay.Options{Algorithm: it.algorithms[0]}
	failed := make([]bool, b.Runs)
	all := make([]history.Summary, b.Runs)
	first := b.seedOf(sc)
	err := b.inParallel(ctx, sc.Name, func(i int) error {
		o := o
		o.Seed = first + uint64(i)
		run, err := replay.Simulate(sc, o)
		if err == nil {
			failed[i], all[i] = !run.Held(), run.History.Summarize(0, run.History.Duration)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	count := 0
	for _, f := range failed {
		if f {
			count++
		}
	}
	fmt.Fprintf(w, "%s: %d of %d runs held\n", sc.Name, b.Runs-count, b.Runs)
	if err := report.Distribution(w, all, b.textOptions()); err != nil {
		return false, err
	}
	if count == 0 {
		return true, nil
	}
	o.Seed, o.Arrows = first+uint64(slices.Index(failed, true)), true
	run, err := replay.Simulate(sc, o)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w, "the first that did not: bmqnode replay %s --seed %d%s\n", sc.File, o.Seed,
		b.algorithmFlag())
	if err := report.Text(w, []verdict.Run{run}, b.textOptions()); err != nil {
		return false, err
	}
	b.shrink(it, 0, run)
	return false, nil
}

// inParallel calls f for every run, on every core. Meanwhile a terminal sees how far it is.
func (b *Batch) inParallel(ctx context.Context, name string, f func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.Runs) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil {
					cancel(err)
				}
				done.Add(1)
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	var look <-chan time.Time
	if term.IsTerminal(int(os.Stderr.Fd())) {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		defer fmt.Fprint(os.Stderr, clearLine)
		look = tick.C
	}
	for {
		select {
		case <-look:
			fmt.Fprintf(os.Stderr, clearLine+"%s: %d of %d runs", name, done.Load(), b.Runs)
		case <-ended:
			return context.Cause(ctx)
		}
	}
}

const (
	progressEvery = 100 * time.Millisecond
	clearLine     = "\r\x1b[K"
)

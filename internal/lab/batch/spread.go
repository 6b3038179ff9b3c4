package batch

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// spreadAll plays every scenario under consecutive seeds, and shows how the figures are
// spread, and the first run that did not hold.
func (b *Batch) spreadAll(ctx context.Context) (held bool, err error) {
	held = true
	err = b.to(b.Output, func(w io.Writer) error {
		for _, it := range b.jobs {
			ok, err := b.spread(ctx, w, it.variants[0])
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
func (b *Batch) spread(ctx context.Context, w io.Writer, sc *scenario.Scenario) (bool, error) {
	failed := make([]bool, b.Runs)
	all := make([]history.Summary, b.Runs)
	first := b.seedOf(sc)
	err := b.inParallel(ctx, sc.Name, func(i int) error {
		run, err := replay.Simulate(sc, replay.Options{Seed: first + uint64(i)})
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
	seed := first + uint64(slices.Index(failed, true))
	run, err := replay.Simulate(sc, replay.Options{Seed: seed, Arrows: true})
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w, "the first that did not: bmqnode replay %s --seed %d\n", sc.File, seed)
	if err := report.Text(w, []report.Run{run}, b.textOptions()); err != nil {
		return false, err
	}
	b.shrink(sc, run)
	return false, nil
}

// inParallel calls f for every run, on every core; a terminal sees how far it is.
func (b *Batch) inParallel(ctx context.Context, name string, f func(i int) error) error {
	var next, done atomic.Int64
	var failure error
	var once sync.Once
	var wg sync.WaitGroup
	stop := b.progress(name, &done)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.Runs) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil {
					once.Do(func() { failure = err })
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	stop()
	if failure == nil {
		failure = ctx.Err()
	}
	return failure
}

const (
	progressEvery = 100 * time.Millisecond
	progressWidth = 30
)

// progress draws a bar on the terminal until stop is called; elsewhere nothing.
func (b *Batch) progress(name string, done *atomic.Int64) (stop func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			n := int(done.Load())
			filled := strings.Repeat("=", n*progressWidth/b.Runs)
			fmt.Fprintf(os.Stderr, "\r\x1b[K%s [%-*s] %d/%d", name, progressWidth, filled, n, b.Runs)
			select {
			case <-tick.C:
			case <-quit:
				fmt.Fprint(os.Stderr, "\r\x1b[K")
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

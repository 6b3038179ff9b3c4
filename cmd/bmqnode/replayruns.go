package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// manyRuns plays every scenario under consecutive seeds, and shows how the
// figures spread and the first run that did not hold.
func (j *replayJob) manyRuns(ctx context.Context, jobs []job) error {
	held := true
	err := j.to(j.output, func(w io.Writer) error {
		for _, it := range jobs {
			ok, err := j.spread(ctx, w, it.variants[0])
			if err != nil {
				return err
			}
			held = held && ok
		}
		return nil
	})
	if err == nil && !held {
		err = errUnmet
	}
	return err
}

// spread plays one scenario many times; it reports whether every run held.
func (j *replayJob) spread(ctx context.Context, w io.Writer, sc *scenario.Scenario) (bool, error) {
	seeds := make([]bool, j.runs)
	all := make([]history.Summary, j.runs)
	first := j.seedOf(sc)
	err := j.inParallel(ctx, sc.Name, func(i int) error {
		run, err := replay.Simulate(sc, replay.Options{Seed: first + uint64(i)})
		if err == nil {
			seeds[i], all[i] = run.Held(), run.History.Summarize(0, run.History.Duration)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	failed := 0
	worst := -1
	for i, ok := range seeds {
		if !ok {
			failed++
			if worst < 0 {
				worst = i
			}
		}
	}
	fmt.Fprintf(w, "%s: %d of %d runs held\n", sc.Name, j.runs-failed, j.runs)
	if err := report.Distribution(w, all, j.textOptions()); err != nil {
		return false, err
	}
	if failed == 0 {
		return true, nil
	}
	return false, j.showFailed(w, sc, first+uint64(worst))
}

// showFailed shows the run of one seed in full.
func (j *replayJob) showFailed(w io.Writer, sc *scenario.Scenario, seed uint64) error {
	run, err := replay.Simulate(sc, replay.Options{Seed: seed, Arrows: true})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "the first that did not: bmqnode replay %s --seed %d\n", sc.File, seed)
	if err := report.Text(w, []verdict.Run{run}, j.textOptions()); err != nil {
		return err
	}
	j.shrink(sc, run)
	return nil
}

// inParallel calls f for every run, on every core; a terminal sees how far it is.
func (j *replayJob) inParallel(ctx context.Context, name string, f func(i int) error) error {
	var next, done atomic.Int64
	var failure error
	var once sync.Once
	var wg sync.WaitGroup
	stop := j.progress(name, &done)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(j.runs) && ctx.Err() == nil; i = next.Add(1) - 1 {
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

// progress draws a bar on the terminal until stop is called; nothing elsewhere.
func (j *replayJob) progress(name string, done *atomic.Int64) (stop func()) {
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
			filled := n * progressWidth / j.runs
			fmt.Fprintf(os.Stderr, "\r\x1b[K%s [%-*s] %d/%d", name, progressWidth, strings.Repeat("=", filled), n, j.runs)
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

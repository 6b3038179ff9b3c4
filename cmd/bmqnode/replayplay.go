package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/replay/live"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// play plays one variant once; number tells live runs at the same time apart.
func (j *replayJob) play(ctx context.Context, sc *scenario.Scenario, name string, number int) (verdict.Run, error) {
	var run verdict.Run
	var err error
	if j.live {
		run, err = j.playLive(ctx, sc, number)
	} else {
		run, err = replay.Simulate(sc, replay.Options{Seed: j.seedOf(sc), Arrows: true})
	}
	if err == nil {
		run.History.Variant = name
	}
	return run, err
}

// portsPerRun keeps the ports of live runs at the same time apart.
const portsPerRun = 200

func (j *replayJob) playLive(ctx context.Context, sc *scenario.Scenario, number int) (verdict.Run, error) {
	self, err := os.Executable()
	if err != nil {
		return verdict.Run{}, err
	}
	fmt.Fprintf(j.cmd.ErrOrStderr(), "playing %s for %s\n", sc.Name, sc.Duration)
	run, err := live.Play(ctx, sc, live.Options{Binary: self, BasePort: j.basePort + portsPerRun*number})
	if err != nil && ctx.Err() == nil && len(j.files) > 1 {
		// The others go on; this one is shown as what it is.
		return verdict.Run{History: &history.History{
			Scenario: sc.Name, Mode: "live", Duration: sc.Duration, Problems: []string{err.Error()},
		}}, nil
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
	results, err := j.playAll(ctx, jobs)
	if err != nil {
		return err
	}
	var all []verdict.Run
	held := true
	for i, runs := range results {
		for v, run := range runs {
			held = held && run.Held()
			j.shrink(jobs[i].variants[v], run)
		}
		all = append(all, runs...)
		if j.perFile() && len(runs) > 0 {
			if err := j.write(j.nameFor(jobs[i].variants[0].File), runs); err != nil {
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

// playAll plays all jobs, several at a time, and returns their runs in order.
func (j *replayJob) playAll(ctx context.Context, jobs []job) ([][]verdict.Run, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results, errs := make([][]verdict.Run, len(jobs)), make([]error, len(jobs))
	places := make(chan int, j.jobs)
	for n := range j.jobs {
		places <- n
	}
	var wg sync.WaitGroup
	for i, it := range jobs {
		place := <-places
		wg.Go(func() {
			results[i], errs[i] = j.playJob(ctx, it, place, len(jobs))
			if errs[i] != nil {
				cancel() // the others would only be thrown away
			}
			places <- place
		})
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

func (j *replayJob) playJob(ctx context.Context, it job, place, jobs int) (runs []verdict.Run, err error) {
	for i, sc := range it.variants {
		if j.live && sc.SimulatedOnly != "" && jobs > 1 {
			fmt.Fprintf(j.cmd.ErrOrStderr(), "%s is left out: %s\n", sc.File, sc.SimulatedOnly)
			continue
		}
		if ctx.Err() != nil {
			return nil, nil // another one failed; it says why
		}
		run, err := j.play(ctx, sc, it.names[i], place)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

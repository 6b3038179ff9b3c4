package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// outcome is what was measured of a system.
type outcome struct {
	system
	trials  map[string][]trial // by fault
	failed  map[string]int     // how many trials failed, by fault
	costs   costs
	equal   costs // of this elector, with as many nodes and the same heartbeat period
	changes int   // of the leader, under load
	err     error // why the rest is missing
}

// result is what was measured in a run.
type result struct {
	plan
	machine  machine
	outcomes []outcome
	profiles []profile
	values   values
}

// profile is what this elector costs at rest with the timers of one of its profiles.
type profile struct {
	system
	costs
}

// measure measures values, and unless only they are wanted each system by itself. A system that
// fails does not end the run.
func (p plan) measure(ctx context.Context, only bool) (r result, err error) {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r.plan = p
	if r.machine, err = describe(dir); err != nil {
		return r, err
	}
	if r.values, err = p.measureValues(ctx, dir); err != nil || only {
		return r, err
	}
	for _, s := range p.systems {
		o := outcome{system: s}
		o.err = p.one(ctx, &o, filepath.Join(dir, s.name))
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if o.err != nil {
			progress("%s failed: %v", s.name, o.err)
		}
		r.outcomes = append(r.outcomes, o)
	}
	for _, s := range profiles() {
		if p.rest == 0 {
			break
		}
		c, err := p.atRest(ctx, s, filepath.Join(dir, "profile", s.kind))
		if err != nil {
			return r, fmt.Errorf("profile %s: %w", s.kind, err)
		}
		r.profiles = append(r.profiles, profile{s, c})
	}
	return r, nil
}

// one measures one system.
func (p plan) one(ctx context.Context, o *outcome, dir string) error {
	progress("%s: %d trials each of %d faults", o.name, p.trials, len(faults))
	err := o.tryAll(ctx, filepath.Join(dir, "trials"), p.trials)
	for _, f := range faults {
		progress("%s: %s: the last survivor knows after %s, median of %d", o.name, f.name,
			quantile(times(o.trials[f.name], last), 0.5), len(o.trials[f.name]))
	}
	if err == nil && p.rest > 0 {
		o.costs, err = p.atRest(ctx, o.system, filepath.Join(dir, "rest"))
	}
	if err == nil && p.load > 0 {
		o.changes, err = underLoad(ctx, o.system, filepath.Join(dir, "load"), p.load)
	}
	if err == nil && p.rest > 0 && o.name != own && o.heartbeat >= shortest {
		o.equal, err = p.atRest(ctx, equal(o.system), filepath.Join(dir, "equal"))
	}
	return err
}

// atRest measures the costs of a system.
func (p plan) atRest(ctx context.Context, s system, dir string) (costs, error) {
	progress("%s: costs with %d nodes at a period of %s, %s", s.name, s.nodes, s.heartbeat, p.rest)
	c, err := launch(ctx, s, dir, 0)
	if err != nil {
		return costs{}, err
	}
	defer c.close()
	return c.costs(ctx, p.rest, p.traffic)
}

func first(t trial) time.Duration    { return t.first }
func last(t trial) time.Duration     { return t.last }
func overlaps(t trial) time.Duration { return t.overlap }

func times(trials []trial, of func(trial) time.Duration) (all []time.Duration) {
	for _, t := range trials {
		all = append(all, of(t))
	}
	return all
}

var began = time.Now()

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(began).Seconds(),
		fmt.Sprintf(format, args...))
}

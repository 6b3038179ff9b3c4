package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

// trial is what one trial showed: how long after it the first and the last survivor saw
// the new leader.
type trial struct {
	first, last time.Duration
	claimed     bool          // after a hang: the old leader still said that it led
	overlap     time.Duration // at a handover: two nodes said that they led
}

// fault is a kind of trial.
type fault struct {
	name string
	try  func(c *cluster, ctx context.Context) (trial, error)
}

var faults = []fault{
	{"crash", (*cluster).crash},
	{"hang", (*cluster).hang},
	{"handover", (*cluster).handover},
	{"cold start", (*cluster).coldStart},
}

// crash kills the leader.
func (c *cluster) crash(ctx context.Context) (trial, error) {
	old := c.leader()
	began := node.Now()
	c.kill(old)
	t, err := c.newLeader(ctx, began, c.all(), "")
	return t, errors.Join(err, c.start(old))
}

// hang stops the leader, and lets it go on when there is another. It is asked then
// whether it leads.
func (c *cluster) hang(ctx context.Context) (trial, error) {
	old := c.leader()
	p := c.processes[old]
	began := node.Now()
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return trial{}, err
	}
	survivors := slices.DeleteFunc(c.all(), func(i int) bool { return i == old })
	t, err := c.newLeader(ctx, began, survivors, node.Name(old))
	if err := errors.Join(err, p.signal(syscall.SIGCONT)); err != nil {
		return t, err
	}
	c.answer = nil
	if err := p.command(node.AskLeads); err != nil {
		return t, err
	}
	err = c.await(ctx, "an answer", func() bool { return c.answer != nil })
	if err == nil {
		t.claimed = *c.answer
	}
	return t, err
}

// handover has the leader hand over while all nodes sample whether they lead.
func (c *cluster) handover(ctx context.Context) (trial, error) {
	c.watched, c.spans = 0, make([][]span, c.nodes)
	if err := c.commandAll(node.Watch); err != nil {
		return trial{}, err
	}
	if err := c.pause(ctx, 20*time.Millisecond); err != nil { // every node samples by then
		return trial{}, err
	}
	old := c.leader()
	if old < 0 {
		return trial{}, errors.New("the leader was lost before it could hand over")
	}
	began := node.Now()
	if err := c.processes[old].command(node.HandOver); err != nil {
		return trial{}, err
	}
	t, err := c.newLeader(ctx, began, c.all(), node.Name(old))
	if err := c.commandAll(node.Unwatch); err != nil {
		return t, err
	}
	sampled := c.await(ctx, "the samples", func() bool { return c.watched == c.nodes })
	t.overlap = overlap(c.spans)
	return t, errors.Join(err, sampled)
}

// coldStart kills all nodes and starts them again, on the directories that they have.
func (c *cluster) coldStart(ctx context.Context) (trial, error) {
	c.close()
	began := node.Now()
	if err := c.startAll(); err != nil {
		return trial{}, err
	}
	return c.newLeader(ctx, began, c.all(), "")
}

func (c *cluster) commandAll(command string) error {
	for _, i := range c.all() {
		if err := c.processes[i].command(command); err != nil {
			return err
		}
	}
	return nil
}

// newLeader waits until all survivors see one leader, one of them, that is not the old
// one.
func (c *cluster) newLeader(ctx context.Context, began int64, survivors []int, old string) (t trial,
	err error) {
	found := func() bool {
		return slices.ContainsFunc(survivors, func(i int) bool {
			return node.Name(i) != old && c.agree(survivors, node.Name(i))
		})
	}
	c.refused = nil
	refused := func() bool { return c.refused != nil }
	if err := c.await(ctx, "a new leader", func() bool { return found() || refused() }); err != nil {
		return t, err
	}
	if !found() {
		return t, fmt.Errorf("%s: the handover failed: %w", c.name, c.refused)
	}
	for n, i := range survivors {
		took := time.Duration(c.beliefs[i].since - began)
		t.last = max(t.last, took)
		if n == 0 || took < t.first {
			t.first = took
		}
	}
	return t, nil
}

// series are the trials of a system.
type series struct {
	mu     sync.Mutex
	trials map[string][]trial // by fault
	failed map[string]int     // how many trials failed, by fault
}

// attempt runs n trials of each fault on as many clusters as the system has lanes.
func attempt(ctx context.Context, s system, dir string, n int) (*series, error) {
	all := &series{trials: map[string][]trial{}, failed: map[string]int{}}
	errs := make([]error, s.lanes)
	var wg sync.WaitGroup
	for lane := range min(s.lanes, n) {
		share := (n + s.lanes - 1 - lane) / s.lanes
		wg.Go(func() {
			errs[lane] = all.lane(ctx, s, filepath.Join(dir, fmt.Sprint(lane)), lane, share)
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

func (a *series) lane(ctx context.Context, s system, dir string, lane, n int) error {
	c, err := launch(ctx, s, dir, lane)
	if err != nil {
		return err
	}
	defer c.close()
	for _, f := range faults {
		for range n {
			if err := a.try(ctx, c, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// try runs a trial at a random moment between two heartbeats.
func (a *series) try(ctx context.Context, c *cluster, f fault) error {
	leads := false
	for !leads {
		if err := c.settle(ctx); err != nil {
			return err
		}
		if err := c.pause(ctx, rand.N(c.heartbeat)); err != nil {
			return err
		}
		leads = c.leader() >= 0
	}
	t, err := f.try(c, ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		progress("%s failed: %v", f.name, err)
		a.failed[f.name]++
	} else {
		a.trials[f.name] = append(a.trials[f.name], t)
	}
	return nil
}

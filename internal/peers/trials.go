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

// trial is the result of one trial: how long after its begin the first and the last survivor
// saw the new leader.
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
	old := c.leader(c.running())
	began := node.Now()
	c.kill(old)
	t, err := c.newLeader(ctx, began, c.running(), old)
	return t, errors.Join(err, c.start(old))
}

// hang stops the leader until there is another one. Then it lets the old leader go on, and asks
// it whether it leads.
func (c *cluster) hang(ctx context.Context) (trial, error) {
	nodes := c.running()
	old := c.leader(nodes)
	p := c.processes[old]
	began := node.Now()
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return trial{}, err
	}
	survivors := slices.DeleteFunc(nodes, func(i int) bool { return i == old })
	t, err := c.newLeader(ctx, began, survivors, old)
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
	old := c.leader(c.running())
	if old < 0 {
		return trial{}, errors.New("the leader was lost before it could hand over")
	}
	began := node.Now()
	if err := c.processes[old].command(node.HandOver); err != nil {
		return trial{}, err
	}
	t, err := c.newLeader(ctx, began, c.running(), old)
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
	return c.newLeader(ctx, began, c.running(), -1)
}

func (c *cluster) commandAll(command string) error {
	for _, i := range c.running() {
		if err := c.processes[i].command(command); err != nil {
			return err
		}
	}
	return nil
}

// newLeader waits until all survivors see one of them, other than the old leader, as the leader.
func (c *cluster) newLeader(ctx context.Context, began int64, survivors []int, old int) (t trial,
	err error) {
	found := func() bool {
		leader := c.leader(survivors)
		return leader >= 0 && leader != old
	}
	c.refused = nil
	err = c.await(ctx, "a new leader", func() bool { return found() || c.refused != nil })
	if err == nil && !found() {
		err = fmt.Errorf("%s: the handover failed: %w", c.name, c.refused)
	}
	if err != nil {
		return t, err
	}
	t.first = patience
	for _, i := range survivors {
		took := time.Duration(c.beliefs[i].since - began)
		t.first, t.last = min(t.first, took), max(t.last, took)
	}
	return t, nil
}

// tryAll runs n trials of each fault, on as many clusters at a time as the system has lanes.
func (o *outcome) tryAll(ctx context.Context, dir string, n int) error {
	o.trials, o.failed = map[string][]trial{}, map[string]int{}
	var mu sync.Mutex
	note := func(fault string, t trial, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			progress("%s failed: %v", fault, err)
			o.failed[fault]++
		} else {
			o.trials[fault] = append(o.trials[fault], t)
		}
	}
	errs := make([]error, o.lanes)
	var wg sync.WaitGroup
	for lane := range min(o.lanes, n) {
		share := (n + o.lanes - 1 - lane) / o.lanes
		wg.Go(func() {
			errs[lane] = o.tryInLane(ctx, filepath.Join(dir, fmt.Sprint(lane)), lane, share, note)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s system) tryInLane(ctx context.Context, dir string, lane, n int,
	note func(fault string, t trial, err error)) error {
	c, err := launch(ctx, s, dir, lane)
	if err != nil {
		return err
	}
	defer c.close()
	for _, f := range faults {
		for range n {
			if err := c.settleAtRandom(ctx); err != nil {
				return err
			}
			t, err := f.try(c, ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			note(f.name, t, err)
		}
	}
	return nil
}

// settleAtRandom waits for a random moment between two heartbeats of a settled cluster.
func (c *cluster) settleAtRandom(ctx context.Context) error {
	for {
		if err := c.settle(ctx); err != nil {
			return err
		}
		if err := c.pause(ctx, rand.N(c.heartbeat)); err != nil {
			return err
		}
		if c.leader(c.running()) >= 0 {
			return nil
		}
	}
}

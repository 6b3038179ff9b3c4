package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

// A value of ours is a record of an election, and one of etcd a key.
const (
	valueSize = 1 << 10
	places    = 100
)

// keepers are the systems that keep values: five voters each.
var keepers = []system{
	{own, "", "lan", 0, 5, 1, 15 * time.Millisecond, places},
	{"etcd", "etcd", "leader", 0, 5, 1, 100 * time.Millisecond, places},
}

// written is how fast a system keeps values.
type written struct {
	system
	one, many speed
}

// speed is how long each write took, and how many there were in a second.
type speed struct {
	took []time.Duration
	rate float64
}

// values is what was measured of values.
type values struct {
	flush     time.Duration
	written   []written
	grown     []time.Duration // adding a voter, with the largest value
	rest, had costs           // of this elector without and with a record
}

// measureValues measures each system for some time, on an otherwise quiet machine.
func (p plan) measureValues(ctx context.Context, dir string) (v values, err error) {
	if v.flush, err = flushTime(dir, valueSize); err != nil {
		return v, err
	}
	for _, s := range keepers {
		w := written{system: s}
		if err := w.measure(ctx, filepath.Join(dir, "values-"+s.name), p.rest); err != nil {
			return v, fmt.Errorf("values: %w", err)
		}
		progress("%s: %.0f values a second, %.0f with %d at a time", s.name, w.one.rate, w.many.rate,
			places)
		v.written = append(v.written, w)
	}
	quiet := keepers[0]
	quiet.values = 1
	for i := range 5 {
		took, err := grow(ctx, quiet, filepath.Join(dir, fmt.Sprint("grow-", i)))
		if err != nil {
			return v, err
		}
		v.grown = append(v.grown, took)
	}
	v.rest, v.had, err = p.withRecord(ctx, quiet, filepath.Join(dir, "record"))
	return v, err
}

func (w *written) measure(ctx context.Context, dir string, lasts time.Duration) error {
	c, err := launch(ctx, w.system, dir, 0)
	if err != nil {
		return err
	}
	defer c.close()
	for _, l := range []struct {
		node.Load
		into *speed
	}{
		{node.Load{Places: places}, &w.many}, // once, so that all places are there
		{node.Load{Places: 1, For: lasts}, &w.one},
		{node.Load{Places: places, For: lasts}, &w.many},
	} {
		if *l.into, err = c.write(ctx, l.Load); err != nil {
			return err
		}
	}
	return nil
}

// write has the leader write.
func (c *cluster) write(ctx context.Context, l node.Load) (speed, error) {
	l.Size = valueSize
	text, err := json.Marshal(l)
	if err != nil {
		return speed{}, err
	}
	r, err := c.ask(ctx, node.Write+string(text))
	seconds := time.Duration(r.To - r.From).Seconds()
	return speed{r.Took, float64(len(r.Took)) / seconds}, err
}

// ask has the leader carry out a command about values.
func (c *cluster) ask(ctx context.Context, command string) (node.Report, error) {
	c.wrote, c.refused = nil, nil
	leader := c.leader(c.running())
	if leader < 0 {
		return node.Report{}, fmt.Errorf("%s: no leader to write: %v", c.name, c.beliefs)
	}
	err := c.processes[leader].command(command)
	if err == nil {
		err = c.await(ctx, command, func() bool { return c.wrote != nil || c.refused != nil })
	}
	if err == nil {
		err = c.refused
	}
	if err != nil {
		return node.Report{}, fmt.Errorf("%s: %s: %w", c.name, command, err)
	}
	return *c.wrote, nil
}

// grow returns how long it takes to write a record with the largest value and to make a node, which
// has nothing of it, one of its voters. The leader must stay.
func grow(ctx context.Context, s system, dir string) (took time.Duration, err error) {
	c, err := launch(ctx, s, dir, 0)
	if err != nil {
		return 0, err
	}
	defer c.close()
	leader, last := c.leader(c.running()), c.nodes
	c.processes, c.lives = append(c.processes, nil), append(c.lives, 0)
	c.beliefs, c.spans = append(c.beliefs, belief{}), append(c.spans, nil)
	if err := c.start(last); err != nil {
		return 0, err
	}
	err = c.await(ctx, "the new node follows", func() bool { return c.leader(c.running()) == leader })
	if err == nil {
		err = c.pause(ctx, 500*time.Millisecond) // it connects to all
	}
	if err != nil {
		return 0, err
	}
	before := c.changes
	r, err := c.ask(ctx, node.Grow+fmt.Sprint(last))
	if err == nil {
		err = c.pause(ctx, 500*time.Millisecond)
	}
	if err == nil && c.changes != before {
		err = fmt.Errorf("the leader changed %d times while a voter was added", c.changes-before)
	}
	return time.Duration(r.To - r.From), err
}

// withRecord returns what a cluster costs at rest, before and after it has a record.
func (p plan) withRecord(ctx context.Context, s system, dir string) (
	without, with costs, err error,
) {
	c, err := launch(ctx, s, dir, 0)
	if err != nil {
		return without, with, err
	}
	defer c.close()
	if without, err = c.costs(ctx, p.rest, p.traffic); err != nil {
		return without, with, err
	}
	if _, err = c.write(ctx, node.Load{Places: 1}); err != nil {
		return without, with, err
	}
	with, err = c.costs(ctx, p.rest, p.traffic)
	return without, with, err
}

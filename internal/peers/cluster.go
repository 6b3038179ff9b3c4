package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

// cluster is a running system. One goroutine at a time uses it.
type cluster struct {
	system
	dir       string
	lane      int
	processes []*process // nil if killed
	lives     []int      // how often each was started
	beliefs   []belief
	events    chan event

	changes int      // how often a node came to lead
	answer  *bool    // to node.AskLeads
	refused error    // of a handover
	spans   [][]span // by node, since node.Watch
	watched int      // nodes whose spans are complete
}

// belief is whom a node takes for the leader, and since when.
type belief struct {
	leader string
	since  int64
}

// patience is how long anything that is waited for may take: more than the longest
// election of any system.
const patience = 30 * time.Second

// launch starts a cluster with empty directories and waits until it has a leader.
func launch(ctx context.Context, s system, dir string, lane int) (*cluster, error) {
	c := &cluster{system: s, dir: dir, lane: lane, processes: make([]*process, s.nodes),
		lives: make([]int, s.nodes), beliefs: make([]belief, s.nodes), events: make(chan event, 1024),
		spans: make([][]span, s.nodes)}
	err := c.startAll()
	if err == nil {
		err = c.settle(ctx)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cluster) close() {
	for i := range c.processes {
		c.kill(i)
	}
}

// start starts a node again, or for the first time. Its address is one of this process
// alone, so no other connection can have taken its ports.
func (c *cluster) start(i int) (err error) {
	pid := os.Getpid()
	spec := node.Spec{
		Self: i, Life: c.lives[i], Nodes: c.nodes, Kind: c.kind, Period: c.period,
		Host: fmt.Sprintf("127.%d.%d.%d", 10+pid>>16&0x7f, pid>>8&0xff, pid&0xff),
		Base: 20_000 + 100*c.lane,
		Dir:  filepath.Join(c.dir, node.Name(i)),
	}
	c.lives[i]++
	c.beliefs[i] = belief{}
	c.processes[i], err = spawn(c.system, spec, c.log(i), c.events)
	return err
}

func (c *cluster) log(i int) string { return filepath.Join(c.dir, node.Name(i)+".log") }

func (c *cluster) startAll() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	for i := range c.processes {
		if err := c.start(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) kill(i int) {
	if p := c.processes[i]; p != nil {
		c.processes[i] = nil // what it still has to say is of no interest
		p.kill()
	}
}

// await takes in events until done returns true.
func (c *cluster) await(ctx context.Context, what string, done func() bool) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case e := <-c.events:
			if err := c.apply(e); err != nil {
				return err
			}
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("%s: not within %s: %s; the nodes see %v", c.name, patience, what,
				c.beliefs)
		}
	}
	return nil
}

// pause takes in events for the given time.
func (c *cluster) pause(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		step := time.Now().Add(min(patience/2, time.Until(end)))
		over := func() bool { return !time.Now().Before(step) }
		if err := c.await(ctx, "a pause", over); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) apply(e event) error {
	if c.processes[e.node] != e.process {
		return nil // of a process that was killed
	}
	if e.ended {
		text, _ := os.ReadFile(c.log(e.node))
		line, _, _ := strings.Cut(string(text), "\n")
		return fmt.Errorf("%s: node %s has ended: %s", c.name, node.Name(e.node), line)
	}
	switch r := e.report; r.Kind {
	case node.Saw:
		leader := c.living(r.Text)
		c.beliefs[e.node] = belief{leader, r.From}
		if leader == node.Name(e.node) {
			c.changes++
		}
	case node.Answer:
		c.answer = &r.Yes
	case node.Failed:
		c.refused = errors.New(r.Text)
	case node.Led:
		c.spans[e.node] = append(c.spans[e.node], span{r.From, r.To})
	case node.Watched:
		c.watched++
	}
	return nil
}

// living is the name of a leader, or "" if the process that was meant is gone.
func (c *cluster) living(leader string) string {
	name, life, ok := strings.Cut(leader, ".")
	for i := range c.processes {
		if ok && name == node.Name(i) && life != strconv.Itoa(c.lives[i]-1) {
			return ""
		}
	}
	return name
}

// leader is the index of the node that all that run take for the leader, or -1.
func (c *cluster) leader() int {
	for _, i := range c.all() {
		if c.agree(c.all(), node.Name(i)) {
			return i
		}
	}
	return -1
}

func (c *cluster) all() (running []int) {
	for i, p := range c.processes {
		if p != nil {
			running = append(running, i)
		}
	}
	return running
}

func (c *cluster) agree(nodes []int, leader string) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool { return c.beliefs[i].leader != leader })
}

// quiet is how long a cluster must have been without news before the next trial. After a longer
// rest, our nodes have also measured the round trips to a node that has come back.
var quiet = 200 * time.Millisecond

// settle waits until all nodes follow one leader and have done so for a while.
func (c *cluster) settle(ctx context.Context) error {
	return c.await(ctx, "one leader that all nodes see", func() bool {
		if len(c.all()) < c.nodes || c.leader() < 0 {
			return false
		}
		newest := int64(0)
		for _, b := range c.beliefs {
			newest = max(newest, b.since)
		}
		return node.Now()-newest > int64(quiet)
	})
}

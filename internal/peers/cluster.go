package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	// equip, if set, completes the spec of a node, and returns the command that starts its process
	// where it is to run: its words come before those of the process.
	equip func(spec *node.Spec) (within []string, err error)

	changes int      // how often a node came to lead
	answer  *bool    // to node.AskLeads
	refused error    // of a handover
	spans   [][]span // by node, since node.Watch
	watched int      // nodes whose spans are complete
	wrote   *node.Report
	worked  []node.Report // node.Worked
	sums    []*node.Sums  // by node, of node.Summed
	ended   int           // processes that have ended by themselves, if mortal
	mortal  bool          // that is no error
}

// belief is the leader that a node sees, and since when.
type belief struct {
	leader string
	since  int64 // as node.Now
}

// patience bounds each wait. It is longer than the longest election of any system.
const patience = 30 * time.Second

// launch starts a cluster with empty directories and waits until it has a leader.
func launch(ctx context.Context, s system, dir string, lane int) (*cluster, error) {
	c := prepare(s, dir, lane)
	err := c.startAll()
	if err == nil {
		err = c.settle(ctx)
	}
	if err != nil {
		c.close()
	}
	return c, err
}

// prepare makes a cluster that is not started.
func prepare(s system, dir string, lane int) *cluster {
	return &cluster{system: s, dir: dir, lane: lane, processes: make([]*process, s.nodes),
		lives: make([]int, s.nodes), beliefs: make([]belief, s.nodes), events: make(chan event, 1024),
		spans: make([][]span, s.nodes)}
}

func (c *cluster) close() {
	for i := range c.processes {
		c.kill(i)
	}
}

// start starts a node, the first time or again. Its host is a loopback address that only this
// process uses, so no other connection can have taken its ports.
func (c *cluster) start(i int) (err error) {
	pid := os.Getpid()
	spec := node.Spec{
		Self: i, Life: c.lives[i], Nodes: c.nodes, Kind: c.kind, Period: c.period, Values: c.values,
		Host: fmt.Sprintf("127.%d.%d.%d", 10+pid>>16&0x7f, pid>>8&0xff, pid&0xff),
		Base: 20_000 + 100*c.lane,
		Dir:  filepath.Join(c.dir, node.Name(i)),
	}
	c.lives[i]++
	c.beliefs[i] = belief{}
	var within []string
	if c.equip != nil {
		if within, err = c.equip(&spec); err != nil {
			return err
		}
	}
	c.processes[i], err = spawn(c.system, spec, within, c.log(i), c.events)
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
		c.processes[i] = nil // apply ignores its last reports
		p.kill()
	}
}

// await applies events until done returns true.
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

// pause applies events for the given time.
func (c *cluster) pause(ctx context.Context, d time.Duration) (err error) {
	for end := time.Now().Add(d); err == nil && time.Now().Before(end); {
		step := time.Now().Add(min(patience/2, time.Until(end)))
		err = c.await(ctx, "a pause", func() bool { return !time.Now().Before(step) })
	}
	return err
}

func (c *cluster) apply(e event) error {
	if c.processes[e.node] != e.process {
		return nil // of a process that was killed
	}
	if e.ended && c.mortal {
		c.ended++
		c.kill(e.node)
		return nil
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
	case node.Wrote:
		c.wrote = &r
	case node.Summed:
		c.sums[e.node] = r.Sums
	case node.Worked:
		c.worked = append(c.worked, r)
	}
	return nil
}

// living is the name of a leader, or "" if the report means a process that is gone.
func (c *cluster) living(leader string) string {
	name, life, ok := strings.Cut(leader, ".")
	for i, starts := range c.lives {
		if ok && name == node.Name(i) && life != strconv.Itoa(starts-1) {
			return ""
		}
	}
	return name
}

// leader is the one of these nodes that all of them see as the leader, or -1.
func (c *cluster) leader(nodes []int) int {
	leader := -1
	for _, i := range nodes {
		if c.beliefs[i].leader == node.Name(i) {
			leader = i
		}
	}
	for _, i := range nodes {
		if leader < 0 || c.beliefs[i].leader != node.Name(leader) {
			return -1
		}
	}
	return leader
}

// running are the nodes that were not killed.
func (c *cluster) running() (nodes []int) {
	for i, p := range c.processes {
		if p != nil {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// quiet is how long a cluster must have been without news before the next trial. After a longer
// rest, our nodes have also measured the round trips to a node that has come back.
var quiet = 200 * time.Millisecond

// settle waits until all nodes follow one leader and have done so for a while.
func (c *cluster) settle(ctx context.Context) error {
	return c.await(ctx, "one leader that all nodes see", func() bool {
		nodes, newest := c.running(), int64(0)
		for _, b := range c.beliefs {
			newest = max(newest, b.since)
		}
		return len(nodes) == c.nodes && c.leader(nodes) >= 0 && node.Now()-newest > int64(quiet)
	})
}

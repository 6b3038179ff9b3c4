package compare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// Network is what every link does to every message, and the timers that suit it.
type Network struct {
	Name   string
	Link   scenario.Link
	Timing elector.Timing
}

// Networks are all, in the order of the tables.
var Networks = []Network{
	{"1 ms", scenario.Link{Delay: time.Millisecond, Jitter: 500 * time.Microsecond}, article()},
	{"10 ms, 10 % lost", scenario.Link{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond,
		Loss: 100_000}, elector.WAN()},
	{"50 ms, 2 % lost", scenario.Link{Delay: 50 * time.Millisecond, Jitter: 25 * time.Millisecond,
		Loss: 20_000}, elector.WAN()},
}

// article has the article's timers, and random waits by rank, as all profiles of networks have.
func article() elector.Timing {
	t := elector.Article()
	t.MinRandomWait = 10 * time.Millisecond
	return t
}

// Cell is what is played under many seeds.
type Cell struct {
	Topology  Topology
	Network   Network
	Algorithm algorithm.Algorithm
	Own       bool // timers that the algorithm's source recommends; otherwise the network's
}

// Cells are all combinations, those of one topology and network next to each other. With their
// own timers, algorithms play in some topologies only.
func Cells(topologies []Topology, networks []Network, all []algorithm.Algorithm) (cells []Cell) {
	for _, t := range topologies {
		for _, n := range networks {
			for _, a := range all {
				cells = append(cells, Cell{t, n, a, false})
				if t.own && a.Tuned != nil {
					cells = append(cells, Cell{t, n, a, true})
				}
			}
		}
	}
	return cells
}

// Play plays the cells under the seeds from 1 on, as many at a time as there are cores, and
// returns their rows in the same order. It tells progress, if that is not nil, how many
// cells are done, one call at a time. The error is the first cell's that could not be
// played, or that of ctx.
func Play(ctx context.Context, cells []Cell, seeds int, progress func(done int)) ([]Row, error) {
	rows := make([]Row, len(cells))
	play := func(ctx context.Context, _, i int) (err error) {
		if rows[i], err = cells[i].play(ctx, seeds); err != nil {
			err = fmt.Errorf("%s: %w", cells[i], err)
		}
		return err
	}
	err := inParallel(ctx, runtime.GOMAXPROCS(0), len(cells), progress, play)
	return rows, err
}

// String names the cell.
func (c Cell) String() string { return c.row().String() }

// row has no figures yet.
func (c Cell) row() Row {
	return Row{Topology: c.Topology.Name, Network: c.Network.Name, Algorithm: c.Algorithm.Name,
		Own: c.Own}
}

// play plays all seeds of a cell.
func (c Cell) play(ctx context.Context, seeds int) (Row, error) {
	sc := c.scenario()
	runs, size := make([]Figures, seeds), sizes{}
	for i := range runs {
		if ctx.Err() != nil {
			return Row{}, context.Cause(ctx)
		}
		o := replay.Options{Seed: uint64(i) + 1, Algorithm: c.Algorithm}
		if i == 0 {
			o.Observer = size.observe
		}
		var err error
		if runs[i], err = c.run(sc, o); err != nil {
			return Row{}, fmt.Errorf("seed %d: %w", o.Seed, err)
		}
		runs[i].Bytes = float64(runs[i].Messages) * size.mean()
	}
	row := c.row()
	row.Fill(runs)
	return row, nil
}

// run plays one seed.
func (c Cell) run(sc *scenario.Scenario, o replay.Options) (Figures, error) {
	s := stage{rng: rand.New(rand.NewPCG(o.Seed, uint64(len(c.Topology.Name)))), network: c.Network,
		warmUp: c.warmUp(), store: c.Algorithm.Store != nil}
	o.Store = c.Topology.store
	for _, n := range sc.Nodes {
		s.ids = append(s.ids, n.ID)
	}
	o.Direct = func(simulation *sim.Sim) {
		s.sim = simulation
		c.Topology.direct(&s)
	}
	run, err := replay.Simulate(sc, o)
	if err != nil {
		return Figures{}, err
	}
	h := run.History
	if wrong := append(h.Broken, h.Problems...); len(wrong) > 0 {
		return Figures{}, fmt.Errorf("%s", wrong[0])
	}
	return Measure(h, s.done), nil
}

// timing has the timers of the cell.
func (c Cell) timing() elector.Timing {
	if !c.Own {
		return c.Network.Timing
	}
	l := c.Network.Link
	t := c.Algorithm.Tuned(c.Network.Timing,
		algorithm.Link{Delay: l.Delay, Jitter: l.Jitter, LossPPM: l.Loss})
	if t.Lease <= t.HeartbeatBroadcast || t.Lease > t.Inactivity()*95/100 {
		t.Lease = t.HeartbeatBroadcast * 11 / 10 // a legal one, of who has none
	}
	return t
}

// warmUp is the time from a cold start until something is done: with long timers, longer.
func (c Cell) warmUp() time.Duration {
	t := c.timing()
	return max(20*time.Second, 2*t.Inactivity())
}

// scenario is the cluster of a cell, with an empty timeline.
func (c Cell) scenario() *scenario.Scenario {
	sc := &scenario.Scenario{Name: c.Topology.Name, Duration: c.warmUp() + c.Topology.length(),
		Network: c.Network.Link, Election: elector.Config{Timing: c.timing()}}
	if ask := c.Algorithm.QoS; ask != (detector.QoS{}) {
		ask.Detect = sc.Election.Timing.Inactivity()
		sc.Election.QoS = ask
	}
	for i := c.Topology.Nodes; i > 0; i-- { // ours prefers the highest identifier
		id := elector.NodeID(fmt.Sprintf("n%d", i))
		sc.Nodes = append(sc.Nodes, scenario.Node{ID: id})
		sc.Election.Voters = append(sc.Election.Voters, id)
	}
	return sc
}

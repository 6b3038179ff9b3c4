package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Sim is a running cluster. Make one with New; the first violation ends it, and
// every later call that would advance it returns that violation again.
type Sim struct {
	cfg      Config
	now      time.Duration
	queue    queue
	nodes    []*node
	byName   map[elector.NodeID]*node
	links    []*link
	network  *rand.Rand // what the network and the disks do
	checker  *Checker
	promises *promises // nil if leases are not checked
	trace    []Event   // the last TraceLines events, and some before them
	err      error
}

// Action is something that a schedule does to the cluster.
type Action func(*Sim) error

// New makes a cluster whose present nodes start at time 0, or, with cfg.Begin,
// one that has a leader at time 0. It returns an error that names everything
// wrong with cfg, or the violation that the election before time 0 met.
func New(cfg Config) (*Sim, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("simulator config: %w", err)
	}
	s := &Sim{
		cfg:     cfg,
		byName:  map[elector.NodeID]*node{},
		network: rand.New(rand.NewPCG(cfg.Seed, 0)),
	}
	if err := s.addNodes(); err != nil {
		return nil, err
	}
	s.checker = NewChecker(s.checks())
	if !s.checks().NoLeases {
		s.promises = newPromises(cfg.Nodes[0].Elector)
	}
	if cfg.Begin.Leader != "" {
		return s, s.begin()
	}
	for _, n := range s.nodes {
		if !n.Absent {
			s.At(0, func(s *Sim) error { return s.Restart(n.id) })
		}
	}
	return s, nil
}

// addNodes makes the nodes and the full mesh of links between them.
func (s *Sim) addNodes() error {
	for i, nc := range s.cfg.Nodes {
		if _, err := elector.New(nc.Elector); err != nil {
			return fmt.Errorf("simulated node %q: %w", nc.Elector.Self, err)
		}
		n := &node{
			NodeConfig: nc, id: nc.Elector.Self, index: i, wakeQueued: forever, leaseUntil: longAgo,
			entropy: rand.New(rand.NewPCG(s.cfg.Seed, uint64(i)+1)),
			disk:    disk{term: nc.Term}, work: work{over: longAgo},
		}
		s.nodes = append(s.nodes, n)
		s.byName[n.id] = n
	}
	for i, a := range s.nodes {
		for _, b := range s.nodes[i+1:] {
			l := &link{nodes: [2]*node{a, b}}
			for i := range l.dirs {
				l.dirs[i] = direction{Faults: s.cfg.Network, last: longAgo}
			}
			a.links, b.links = append(a.links, l), append(b.links, l)
			s.links = append(s.links, l)
		}
	}
	return nil
}

// checks is what may be asked of machines so configured: where a safety feature
// is off, what it is there for need not hold.
func (s *Sim) checks() Checks {
	c := s.cfg.Checks
	for _, n := range s.nodes {
		c.NoLeases = c.NoLeases || n.Elector.UnsafeNoScouting || n.Elector.UnsafeQuorum
		c.TwoLeaders = c.TwoLeaders || n.Elector.UnsafeQuorum
	}
	return c
}

// Now is the simulated time.
func (s *Sim) Now() time.Duration { return s.now }

// Err returns the first violation or failed action, nil if there was none.
func (s *Sim) Err() error { return s.err }

// At lets an action happen at a simulated time: now, if t is in the past. Actions
// of the same time happen in the order of the calls.
func (s *Sim) At(t time.Duration, do Action) {
	s.queue.at(max(t, s.now), func() {
		if err := do(s); err != nil && s.err == nil {
			s.err = fmt.Errorf("seed %d, action at %s: %w", s.cfg.Seed, s.now, err)
		}
	})
}

// RunUntil lets everything happen that happens up to time t, and leaves the
// clock at t. It returns Err.
func (s *Sim) RunUntil(t time.Duration) error {
	for s.err == nil {
		it, ok := s.queue.next(t)
		if !ok {
			s.now = max(s.now, t)
			break
		}
		s.now = it.at
		it.do()
	}
	return s.err
}

// RunFor is RunUntil d from now.
func (s *Sim) RunFor(d time.Duration) error { return s.RunUntil(s.now + d) }

// observe tells the trace and the observer of an event.
func (s *Sim) observe(e *Event) {
	e.At = s.now
	if s.trace = append(s.trace, *e); len(s.trace) >= 2*s.cfg.TraceLines {
		s.trace = s.trace[:copy(s.trace, s.lastEvents())]
	}
	if s.cfg.Observer != nil {
		s.cfg.Observer(e)
	}
}

// check ends the run if the checker found a violation.
func (s *Sim) check(v *Violation) {
	if v == nil || s.err != nil {
		return
	}
	v.Seed, v.At = s.cfg.Seed, s.now
	for i := range s.lastEvents() {
		v.Trace = append(v.Trace, s.lastEvents()[i].String())
	}
	s.err = v
}

func (s *Sim) lastEvents() []Event { return s.trace[max(0, len(s.trace)-s.cfg.TraceLines):] }

// upTo draws a duration from [0, limit].
func (s *Sim) upTo(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(s.network.Uint64N(uint64(limit) + 1))
}

// chance draws whether something happens that happens ppm times in a million.
func (s *Sim) chance(ppm int) bool {
	return ppm > 0 && s.network.Uint64N(million) < uint64(ppm)
}

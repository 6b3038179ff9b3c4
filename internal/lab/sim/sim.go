package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/scouting"
)

// Sim is a running cluster. Make one with New; the first violation ends it, and
// every later call that would advance it returns that violation again.
type Sim struct {
	cfg     Config
	seed    uint64
	now     time.Duration
	queue   queue
	nodes   []*node
	byName  map[elector.NodeID]*node
	links   []*link
	store   ensemble
	network *rand.Rand // what the network and the disks do
	spec    *spec.Cluster
	sent    int               // messages
	events  int               // that were observed
	trace   [traceLines]Event // the last of them, by number
	err     error
}

// Action is something that a schedule does to the cluster.
type Action func(*Sim) error

// New makes a cluster whose present nodes start at time 0, or, with cfg.Begin,
// one that has a leader at time 0. It returns an error about an elector's
// configuration, or the violation that the election before time 0 met.
func New(cfg Config) (*Sim, error) {
	cfg = cfg.withDefaults()
	name, voters := cfg.Algorithm.Name, len(cfg.first().Voters)
	own := name == ours.Elector.Name || name == ours.WithoutScouting.Name
	if own && voters > scouting.MaxVoters {
		return nil, fmt.Errorf("%d nodes vote, but must be at most %d in %s: let the others be "+
			"observers, or play another algorithm", voters, scouting.MaxVoters, name)
	}
	if cfg.Begin.Leader == "" || cfg.Algorithm.Name == ours.Elector.Name {
		return newSim(cfg, cfg.Seed, false)
	}
	// Which member such an algorithm elects is chance, or a matter of Order. The observer is
	// to see only the attempt that succeeds.
	quiet := cfg
	quiet.Observer = nil
	for attempt := range uint64(beginAttempts) {
		seed, scattered := cfg.Seed+attempt<<32, attempt >= beginAttempts/2
		_, err := newSim(quiet, seed, scattered)
		if !errors.Is(err, errOtherLeader) || attempt == beginAttempts-1 {
			return newSim(cfg, seed, scattered)
		}
	}
	panic("unreachable")
}

// beginAttempts is how often New tries to begin with the wanted leader.
const beginAttempts = 200

// errOtherLeader says that the election before time 0 did not elect the wanted leader.
var errOtherLeader = errors.New("another leads")

// newSim makes a cluster. If it begins scattered, an established leader has no head start:
// with one, some algorithms always elect another.
func newSim(cfg Config, seed uint64, scattered bool) (*Sim, error) {
	s := &Sim{
		cfg:     cfg,
		seed:    seed,
		byName:  map[elector.NodeID]*node{},
		network: rand.New(rand.NewPCG(seed, 0)),
	}
	if err := s.addNodes(); err != nil {
		return nil, err
	}
	first := cfg.first()
	s.spec = spec.NewCluster(first.Voters, first.QuorumSize(), s.checks())
	if cfg.Begin.Leader != "" {
		return s, s.begin(scattered)
	}
	for _, n := range s.nodes {
		if !n.Absent {
			s.At(0, func(s *Sim) error { return s.Restart(n.id) })
		}
	}
	return s, nil
}

// addNodes makes the nodes, the store if the algorithm has one, and the full mesh of links
// between them.
func (s *Sim) addNodes() error {
	nodes := s.cfg.Nodes
	if s.cfg.Algorithm.Store != nil {
		store := NodeConfig{Elector: nodes[0].Elector}
		if i := slices.IndexFunc(nodes, isStore); i >= 0 {
			return fmt.Errorf("no node may be named %q: %s has a store of that name",
				algorithm.StoreNode, s.cfg.Algorithm.Name)
		}
		store.Elector.Self = algorithm.StoreNode
		nodes = append(slices.Clone(nodes), store)
	}
	for i, nc := range nodes {
		err := nc.Elector.Validate()
		if err != nil && len(nc.Elector.Voters) <= scouting.MaxVoters { // the elector knows no more
			return fmt.Errorf("simulated node %q: %w", nc.Elector.Self, err)
		}
		n := &node{
			NodeConfig: nc, id: nc.Elector.Self, index: i, wakeQueued: forever, leaseUntil: longAgo,
			entropy: rand.New(rand.NewPCG(s.seed, uint64(i)+1)),
			work:    work{over: longAgo},
		}
		n.disk.state = ours.Disk{Terms: elector.Terms{Entered: nc.Term, Reserved: nc.Term}}
		if _, ok := s.newMachine(n).(*ours.Machine); !ok {
			n.disk.state = nil
			if nc.Elector.Observer() && n.id != algorithm.StoreNode {
				return fmt.Errorf("%s does not vote, and %s is played without observers: play it with "+
					"another file, or this one with %s", n.id, s.cfg.Algorithm.Name, ours.Elector.Name)
			}
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
	s.placeStore()
	return nil
}

// ids are the names of all nodes.
func (s *Sim) ids() []elector.NodeID {
	ids := make([]elector.NodeID, len(s.nodes))
	for i, n := range s.nodes {
		ids[i] = n.id
	}
	return ids
}

func isStore(n NodeConfig) bool { return n.Elector.Self == algorithm.StoreNode }

// newMachine makes the machine of a node's next process.
func (s *Sim) newMachine(n *node) algorithm.Machine {
	c := algorithm.Config{Elector: n.Elector, Order: s.cfg.Order}
	c.Elector.Identity = n.identity()
	if n.id == algorithm.StoreNode {
		return s.cfg.Algorithm.Store(c)
	}
	return s.cfg.Algorithm.New(c)
}

// sharedZero is the reading at time 0 of the clock that all nodes share.
const sharedZero = elector.Time(1000 * time.Hour)

// begin elects the leader that time 0 is to find, by the algorithm's own means:
// the disks of all nodes that are there have the term before, and the leader
// starts an initial wait ahead of the others, so that they vote before they would
// stand. The network has no faults except its delay before time 0.
func (s *Sim) begin(scattered bool) error {
	b, t := s.cfg.Begin, s.byName[s.cfg.Begin.Leader].Elector.Timing
	s.now = -(t.InitialWait + t.MaxRandomWait + t.ScoutingResult + t.ElectionResult + s.cfg.Redial)
	s.setAllFaults(Faults{Delay: s.cfg.Network.Delay})
	for _, n := range s.nodes {
		if n.Absent {
			continue
		}
		if n.disk.state != nil {
			n.disk.state = ours.Disk{Terms: elector.Terms{Entered: b.Term - 1, Reserved: b.Term - 1}}
		}
		start := s.now
		switch {
		case n.id == algorithm.StoreNode:
		case scattered:
			start += s.upTo(t.InitialWait - s.cfg.Redial)
		case n.id != b.Leader:
			start += t.InitialWait - s.cfg.Redial
		}
		s.At(start, func(s *Sim) error { return s.Restart(n.id) })
	}
	if err := s.RunUntil(0); err != nil {
		return fmt.Errorf("before time 0: %w", err)
	}
	s.setAllFaults(s.cfg.Network)
	n := s.byName[b.Leader]
	is := n.machine.View()
	if leader, _ := s.Leader(); leader != n.id || n.elector != nil && is.Term != b.Term {
		return fmt.Errorf("begin: %w: %s cannot be made leader in term %d: at time 0 it is %s in term %d",
			errOtherLeader, b.Leader, b.Term, is.Role, is.Term)
	}
	return nil
}

func (s *Sim) setAllFaults(f Faults) {
	for _, l := range s.links {
		l.dirs[0].Faults, l.dirs[1].Faults = f, f
	}
	for _, n := range s.nodes {
		s.measure(n)
	}
}

// checks are the invariants that hold for this configuration: not those of a safety feature
// that is off.
func (s *Sim) checks() spec.Checks {
	c := s.cfg.Checks
	c.NoLeases = c.NoLeases || !s.cfg.Algorithm.Leased
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

// leads reports whether n holds a valid lease; where the algorithm has none, whether n
// believes that it leads.
func (s *Sim) leads(n *node) bool {
	if n.elector == nil && !s.cfg.Algorithm.Leased {
		return n.view.Role == elector.Leader
	}
	return s.now < n.leaseUntil
}

// Leader returns the node that leads: it has the role, its lease is valid, and
// as many voters as it needs, itself included, follow it. ok is false if none
// does.
func (s *Sim) Leader() (id elector.NodeID, ok bool) {
	for _, n := range s.nodes {
		followers, voters := 0, n.voters()
		for _, id := range voters {
			if v := s.byName[id]; v.running() && v.machine.View().Leader == n.id {
				followers++
			}
		}
		if s.leads(n) && followers >= cmp.Or(n.Elector.Quorum, elector.Majority(len(voters))) {
			return n.id, true
		}
	}
	return "", false
}

// LeaseUntil is the end of a node's lease in simulated time, without allocation;
// before time 0 began if it has none.
func (s *Sim) LeaseUntil(id elector.NodeID) time.Duration { return s.byName[id].leaseUntil }

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
		at, what, ok := s.queue.next(t)
		if !ok {
			s.now = max(s.now, t)
			break
		}
		s.now = at
		switch {
		case what.do != nil:
			what.do()
		case what.link != nil:
			s.arrive(&what)
		default:
			s.tick(what.node, what.boot)
		}
	}
	return s.err
}

// traceLines is how many of the last events a Violation carries.
const traceLines = 60

// observe tells the trace and the observer of an event.
func (s *Sim) observe(e Event) {
	e.At = s.now
	s.events++
	kept := &s.trace[s.events%traceLines]
	*kept = e
	if s.cfg.Observer != nil {
		s.cfg.Observer(kept)
	}
}

// check ends the run if the checker found a violation.
func (s *Sim) check(v *spec.Violation) {
	if v == nil || s.err != nil {
		return
	}
	v.Seed, v.At = s.cfg.Seed, s.now
	for i := max(1, s.events-traceLines+1); i <= s.events; i++ {
		v.Trace = append(v.Trace, s.trace[i%traceLines].String())
	}
	s.err = v
}

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

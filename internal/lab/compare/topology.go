package compare

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// Times of a run.
const (
	faultFor = 40 * time.Second // until it is repaired, unless the topology says otherwise
	lookOn   = 20 * time.Second // after the repair
)

// Topology is what goes wrong.
type Topology struct {
	Name  string
	About string // one line: what is done to whom
	Nodes int
	// prepare happens at the end of the warm-up and takes prepares; fault happens then. Both
	// find the leader of the moment in the stage. repair follows; nil heals every cut.
	prepare, fault, repair func(*stage) error
	prepares               time.Duration
	lasts                  time.Duration // 0 is faultFor
	own                    bool          // is played with the algorithms' own timers, too
	store                  sim.Store     // where that of an algorithm is which has one
}

// Topologies are all, in the order of the tables.
var Topologies = []Topology{
	{Name: "whole", About: "nothing goes wrong", Nodes: 5, own: true, fault: nothing},
	{Name: "process-crash", About: "the leader's process is killed", Nodes: 5, own: true,
		fault: crash(false), repair: restartCrashed},
	{Name: "host-crash", About: "the leader's host vanishes", Nodes: 5, own: true,
		fault: crash(true), repair: restartCrashed},
	{Name: "leader-isolated", About: "the leader loses all links", Nodes: 5, own: true,
		fault: func(s *stage) error { return s.keep(s.without(s.leader)) }},
	{Name: "quorum-loss", About: "all links break but those of one follower", Nodes: 5, own: true,
		fault: func(s *stage) error { return s.keep(s.star(s.others()[0])) }},
	{Name: "constrained", About: "the same, and the one missed the last election; the leader " +
		"is isolated", Nodes: 5, prepares: 20 * time.Second,
		prepare: missAnElection, fault: constrain},
	{Name: "chain-3", About: "a follower loses its link to the leader, and a third node " +
		"sees both", Nodes: 3,
		fault: func(s *stage) error { return s.set(s.leader, s.others()[0], false) }},
	{Name: "chain-5", About: "five nodes in a row, the leader in the middle", Nodes: 5, fault: chain},
	{Name: "leader-mute", About: "one follower does not hear the leader", Nodes: 5,
		fault: func(s *stage) error { return s.sim.Cut(s.leader, s.others()[0]) }},
	{Name: "leader-deaf", About: "the leader does not hear one follower", Nodes: 5,
		fault: func(s *stage) error { return s.sim.Cut(s.others()[0], s.leader) }},
	{Name: "flapping", About: "a link of the leader breaks again and again, for longer than " +
		"a leader may be silent", Nodes: 5,
		fault: flap},
	{Name: "slow-leader", About: "what the leader sends takes 0.4 s to 0.6 s", Nodes: 5,
		fault: slowDown, repair: speedUp},
	{Name: "restart-preferred", About: "the node that is preferred restarts every minute", Nodes: 5,
		lasts: 3 * time.Minute, repair: nothing,
		fault: func(s *stage) error { return s.restart(s.ids[0]) }},
	{Name: "restart-least", About: "the node that is preferred least does", Nodes: 5,
		lasts: 3 * time.Minute, repair: nothing,
		fault: func(s *stage) error { return s.restart(s.ids[len(s.ids)-1]) }},
	{Name: "store-crash", About: "the store, of whom has one, elects another leader", Nodes: 5,
		fault: func(s *stage) error { return s.sim.FailStore(0) }, repair: nothing},
	{Name: "store-cut-off", About: "the store is on machines of its own, and the leader alone loses " +
		"its link to it", Nodes: 5, store: sim.Store{Apart: true}, fault: cutOffStore},
	{Name: "store-down", About: "nobody reaches the store", Nodes: 5,
		fault: func(s *stage) error { return s.sim.FailStore(faultFor) }, repair: nothing},
}

// stage is a run to which a topology does something.
type stage struct {
	sim     *sim.Sim
	ids     []elector.NodeID // the preferred one first
	leader  elector.NodeID   // of the moment; if there is none, who led last or is preferred
	rng     *rand.Rand
	network Network
	warmUp  time.Duration
	hub     elector.NodeID
	store   bool // the algorithm has one
	done    Fault
}

// direct schedules the faults of a topology in a simulation that has not started, and notes
// their times.
func (t Topology) direct(s *stage) {
	lookUp := func() {
		if leader, ok := s.sim.Leader(); ok {
			s.leader = leader
		}
	}
	s.leader = s.ids[0]
	prepare, repair := t.prepare, t.repair
	if prepare == nil {
		prepare = nothing
	}
	if repair == nil {
		repair = func(s *stage) error { s.sim.HealAll(); return nil }
	}
	s.done.From = s.warmUp + t.faultAfter(s.rng)
	s.done.To = s.done.From + cmp.Or(t.lasts, faultFor)
	s.at(s.done.From-t.prepares, func() error { lookUp(); return prepare(s) })
	s.at(s.done.From, func() error { lookUp(); return t.fault(s) })
	s.at(s.done.To, func() error { return repair(s) })
}

// faultAfter is how long after the warm-up: at any place between two heartbeats.
func (t Topology) faultAfter(rng *rand.Rand) time.Duration {
	return t.prepares + time.Duration(rng.Int64N(int64(time.Second)))
}

// length is how long a run takes at most, after the warm-up.
func (t Topology) length() time.Duration {
	return t.prepares + time.Second + cmp.Or(t.lasts, faultFor) + lookOn
}

func (s *stage) at(when time.Duration, do func() error) {
	s.sim.At(when, func(*sim.Sim) error { return do() })
}

// others are all except the leader, shuffled.
func (s *stage) others() []elector.NodeID {
	ids := slices.DeleteFunc(slices.Clone(s.ids),
		func(id elector.NodeID) bool { return id == s.leader })
	s.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// links says which there are between two nodes.
type links func(a, b elector.NodeID) bool

// without are the links of all but some nodes.
func (s *stage) without(nodes ...elector.NodeID) links {
	return func(a, b elector.NodeID) bool {
		return !slices.Contains(nodes, a) && !slices.Contains(nodes, b)
	}
}

// star are the links of a node.
func (s *stage) star(hub elector.NodeID) links {
	return func(a, b elector.NodeID) bool { return a == hub || b == hub }
}

// keep heals these links and cuts all others.
func (s *stage) keep(kept links) (err error) {
	for i, a := range s.ids {
		for _, b := range s.ids[i+1:] {
			err = errors.Join(err, s.set(a, b, kept(a, b)))
		}
	}
	return err
}

// set heals or cuts a link.
func (s *stage) set(a, b elector.NodeID, whole bool) error {
	act := s.sim.Cut
	if whole {
		act = s.sim.Heal
	}
	return errors.Join(act(a, b), act(b, a))
}

func nothing(*stage) error { return nil }

func crash(silent bool) func(*stage) error {
	return func(s *stage) error {
		s.done.Crashed = s.leader
		return s.sim.Crash(s.leader, sim.Crash{Silent: silent})
	}
}

func restartCrashed(s *stage) error { return s.sim.Restart(s.done.Crashed) }

// missAnElection isolates a follower, and then the leader until the others have elected
// another one.
func missAnElection(s *stage) error {
	s.hub = s.others()[0]
	s.at(s.sim.Now()+12*time.Second, func() error { return s.keep(s.without(s.hub)) })
	return s.keep(s.without(s.hub, s.leader))
}

// constrain leaves only the links of the node that missed an election, without its link to
// the leader.
func constrain(s *stage) error {
	if s.leader == s.hub { // it was elected after all
		s.leader = s.others()[0]
	}
	star, others := s.star(s.hub), s.without(s.leader)
	return s.keep(func(a, b elector.NodeID) bool { return star(a, b) && others(a, b) })
}

func cutOffStore(s *stage) error {
	if !s.store {
		return nil
	}
	return s.set(s.leader, algorithm.StoreNode, false)
}

func chain(s *stage) error {
	row := slices.Insert(s.others(), 2, s.leader)
	return s.keep(func(a, b elector.NodeID) bool {
		apart := slices.Index(row, a) - slices.Index(row, b)
		return apart == 1 || apart == -1
	})
}

func flap(s *stage) error {
	a, b := s.leader, s.others()[0]
	half := s.network.Timing.Inactivity() + 500*time.Millisecond
	return s.every(2*half, half, func() error { return s.set(a, b, false) },
		func() error { return s.set(a, b, true) })
}

// every does one thing in each period until the repair, and each time another one later.
func (s *stage) every(period, later time.Duration, one, other func() error) error {
	for t := s.sim.Now(); t < s.done.To; t += period {
		s.at(t, one)
		s.at(t+later, other)
	}
	return nil
}

func slowDown(s *stage) error { return s.sends(400*time.Millisecond, 200*time.Millisecond) }

func speedUp(s *stage) error { return s.sends(s.network.Link.Delay, s.network.Link.Jitter) }

// sends sets how long it takes what the node sends that led at the fault.
func (s *stage) sends(delay, jitter time.Duration) (err error) {
	slow := sim.Faults{Delay: delay, Jitter: jitter, LossPPM: s.network.Link.Loss}
	for _, id := range s.ids {
		if id != s.leader {
			err = errors.Join(err, s.sim.SetFaults(s.leader, id, slow))
		}
	}
	return err
}

// restart kills a node every minute; each time it is back after a second.
func (s *stage) restart(id elector.NodeID) error {
	return s.every(time.Minute, time.Second, func() error { return s.sim.Crash(id, sim.Crash{}) },
		func() error { return s.sim.Restart(id) })
}

package clustertest

import (
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
)

// statement checks each step of all nodes of a world against the specification of the protocol.
type statement struct {
	w        *world
	mu       sync.Mutex
	clusters map[string]*spec.Cluster            // by election
	asked    map[part]map[lsn.Term]elector.Terms // what nodes asked for first, by the reserved term
	entered  map[part]lsn.Term                   // what the disks have
	steps    int
}

// part is a process in one election.
type part struct {
	p     *process
	group string
}

func newStatement(w *world) *statement {
	s := &statement{
		w: w, clusters: map[string]*spec.Cluster{}, asked: map[part]map[lsn.Term]elector.Terms{},
		entered: map[part]lsn.Term{},
	}
	for _, group := range w.elections {
		s.clusters[group] = spec.NewCluster(w.voters, elector.Majority(len(w.voters)), spec.Checks{})
	}
	return s
}

// stepped checks a step of a process.
func (s *statement) stepped(p *process, step testhook.Step) {
	if p.isCopy || p.Killed() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps++
	id, held, own := p.m.id, s.clusters[step.Group], part{p, step.Group}
	var broken *spec.Violation
	switch in := step.In.(type) {
	case elector.Start:
		s.asked[own], s.entered[own] = map[lsn.Term]elector.Terms{}, in.Term
		reserved := max(in.Term, in.Reserved)
		broken = held.Booted(id, elector.Terms{Entered: in.Term, Reserved: reserved})
	case elector.Persisted:
		// Several requests may have reserved the same. The first of them is on disk for certain, the
		// term of the record, and what was there before.
		t := s.asked[own][in.Term]
		t.Entered = max(t.Entered, in.Record.Term, s.entered[own])
		s.entered[own] = t.Entered
		broken = held.Durable(id, t)
	}
	none := elector.Terms{}
	if t := step.Effects.Persist; t != none && s.asked[own][t.Reserved] == none {
		s.asked[own][t.Reserved] = t
	}
	if broken == nil {
		now := time.Since(s.w.judge.began)
		broken = held.Step(&spec.Step{
			Now: now, Node: id, Identity: p.disk.identity(),
			Clock: behind(now - time.Duration(step.State.Now)), Timing: &s.w.timing,
			Effects: step.Effects, State: &step.State, Lease: step.Lease,
		}, step.In)
	}
	if broken != nil {
		s.w.judge.breaks("statement: "+broken.Rule, "election %s: %s; after %T %+v; leader %q carried %v heard %s now %s promise %+v", step.Group, broken.Detail, step.In, step.In, step.State.Follower.Leader, step.State.Follower.Carried, step.State.Follower.HeardAt, step.State.Now, step.State.Promise)
	}
}

// wiped records that a member lost its disk.
func (s *statement) wiped(m *supervised) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, held := range s.clusters {
		held.Wiped(m.id)
	}
}

// gone records the end of a process.
func (s *statement) gone(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for group, held := range s.clusters {
		held.Gone(p.m.id)
		delete(s.asked, part{p, group})
		delete(s.entered, part{p, group})
	}
}

// behind is by how much a process's clock is behind that of the world.
type behind time.Duration

func (b behind) When(at elector.Time) time.Duration {
	if at == elector.Never {
		return time.Duration(at)
	}
	return time.Duration(at) + time.Duration(b)
}

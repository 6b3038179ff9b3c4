package chaos

import (
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
)

// statement holds each step of all nodes of a world against the statement of the protocol.
type statement struct {
	w       *world
	mu      sync.Mutex
	cluster *spec.Cluster
	asked   map[*process]map[lsn.Term]elector.Terms // of the disk, by what is reserved
	steps   int
}

func newStatement(w *world) *statement {
	return &statement{
		w: w, cluster: spec.NewCluster(w.voters, elector.Majority(len(w.voters)), spec.Checks{}),
		asked: map[*process]map[lsn.Term]elector.Terms{},
	}
}

// stepped is told of each step of a process.
func (s *statement) stepped(p *process, step testhook.Step) {
	if p.isCopy || p.Killed() || step.Group != cluster.DefaultGroup {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps++
	id := p.m.id
	var broken *spec.Violation
	switch in := step.In.(type) {
	case elector.Start:
		s.asked[p] = map[lsn.Term]elector.Terms{}
		reserved := max(in.Term, in.Reserved)
		broken = s.cluster.Booted(id, elector.Terms{Entered: in.Term, Reserved: reserved})
	case elector.Persisted:
		broken = s.cluster.Durable(id, s.asked[p][in.Term])
	}
	if t := step.Effects.Persist; t != (elector.Terms{}) {
		s.asked[p][t.Reserved] = t
	}
	if broken == nil {
		now := time.Since(s.w.judge.began)
		broken = s.cluster.Step(&spec.Step{
			Now: now, Node: id, Clock: behind(now - time.Duration(step.State.Now)), Timing: &s.w.timing,
			In: step.In, Effects: step.Effects, State: &step.State, Lease: step.Lease,
		})
	}
	if broken != nil {
		s.w.judge.breaks("statement: "+broken.Rule, "%s", broken.Detail)
	}
}

// gone is told that a process is no more.
func (s *statement) gone(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster.Gone(p.m.id)
	delete(s.asked, p)
}

// behind is by how much a process's clock is behind that of the world.
type behind time.Duration

func (b behind) When(at elector.Time) time.Duration {
	if at == elector.Never {
		return time.Duration(at)
	}
	return time.Duration(at) + time.Duration(b)
}

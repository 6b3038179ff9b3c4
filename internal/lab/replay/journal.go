package replay

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/lsn"
)

// journal collects what real processes log and what is done to them, from many
// goroutines, and makes a history of it in the end.
type journal struct {
	mu      sync.Mutex
	entries []entry
	reasons map[string]elector.Reason
	roles   map[string]elector.Role
}

// entry is one thing that happened: a transition, unless tell is set.
type entry struct {
	at         time.Time
	node       cluster.NodeID
	transition elector.Transition
	tell       func(r *recorder, at time.Duration)
	wiped      bool // the node's disk was lost
}

func newJournal() *journal {
	j := &journal{reasons: map[string]elector.Reason{}, roles: map[string]elector.Role{}}
	for r := elector.Dormant; r <= elector.Leader; r++ {
		j.roles[r.String()] = r
	}
	for r := elector.ReasonNone; r.Valid(); r++ {
		j.reasons[r.String()] = r
	}
	return j
}

func (j *journal) add(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
}

// line takes what a process logs.
func (j *journal) line(l procs.Line) {
	e, ok := l.Transition()
	if !ok {
		if l.Level == "" || l.Level == "error" {
			j.problem(l)
		}
		return
	}
	j.add(entry{at: e.Time, node: e.Node, transition: elector.Transition{
		From: j.roles[e.From], To: j.roles[e.To], Reason: j.reasons[e.Reason],
		Term: e.Term, Leader: e.Leader, Peer: e.Peer,
	}})
}

// problem notes what no process should say.
func (j *journal) problem(l procs.Line) {
	j.add(entry{at: l.Time, tell: func(r *recorder, _ time.Duration) {
		r.h.Problems = append(r.h.Problems, fmt.Sprintf("%s said: %s", l.Node, l.Text))
	}})
}

// process notes what is done to a process, just before it is done.
func (j *journal) process(id cluster.NodeID, p history.Process) {
	j.add(entry{at: time.Now(), tell: func(r *recorder, at time.Duration) {
		switch {
		case p == history.Down:
			r.gone(at, id)
		case p == history.Up && r.lanes[id].now.Process == history.Down:
			r.started(at, id, r.lanes[id].now.Term)
		default:
			r.resumed(at, id)
		}
	}})
}

// resumed tells that a paused process goes on. If its lease may still run, what
// it had before holds again: it steps down by itself if it does not.
func (r *recorder) resumed(at time.Duration, id cluster.NodeID) {
	r.become(at, id, func(s *history.Span) {
		s.Process = history.Up
		if s.Role == elector.Leader && at < s.LeaseUntil {
			s.LeaseUntil = history.Forever
		}
	})
}

// wiped notes that a node lost its disk.
func (j *journal) wiped(id cluster.NodeID) {
	j.add(entry{at: time.Now(), node: id, tell: func(r *recorder, at time.Duration) {
		r.become(at, id, func(s *history.Span) { *s = history.Span{} })
	}, wiped: true})
}

// paused notes a pause: the lease that the node may hold runs out by itself.
func (j *journal) paused(id cluster.NodeID, lease time.Duration) {
	j.add(entry{at: time.Now(), tell: func(r *recorder, at time.Duration) {
		r.become(at, id, func(s *history.Span) {
			s.Process = history.Paused
			if s.LeaseUntil == history.Forever && !r.h.NoLease {
				s.LeaseUntil = at + lease
			}
		})
	}})
}

// mark notes a step of the timeline.
func (j *journal) mark(step *scenario.Step, note string) {
	j.add(entry{at: time.Now(), tell: func(r *recorder, _ time.Duration) { r.mark(step.At, step.Text, note) }})
}

// cuts notes which directions are cut from now on.
func (j *journal) cuts(now map[scenario.Pair]bool) {
	cut := maps.Clone(now)
	j.add(entry{at: time.Now(), tell: func(r *recorder, at time.Duration) {
		for _, p := range slices.Clone(r.order) {
			if !cut[p] {
				r.heal(at, p)
			}
		}
		for _, p := range sortedPairs(cut) {
			r.cut(at, p)
		}
	}})
}

// history is what the journal tells, in order of time, with terms shifted to
// those of the scenario.
func (j *journal) history(sc *scenario.Scenario, start time.Time, shift int64) *history.History {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.SortStableFunc(j.entries, func(a, b entry) int { return a.at.Compare(b.at) })
	r := newRecorder(sc, "live", 0)
	check := sim.NewChecker(sim.Checks{NoLeases: sc.Election.UnsafeNoScouting, TwoLeaders: sc.Election.UnsafeQuorum})
	for _, e := range j.entries {
		at := e.at.Sub(start)
		if e.wiped {
			check.Wiped(e.node)
		}
		if e.tell != nil {
			e.tell(r, at)
			continue
		}
		e.transition.Term = lsn.Term(max(int64(e.transition.Term)+shift, 0))
		j.take(r, check, at, e)
	}
	h := r.finish(sc.Duration)
	h.Broken = append(h.Broken, twoLeases(h)...)
	return h
}

// take hands a transition to the checker and the recorder. What a process logged
// as it was killed comes too late to count.
func (j *journal) take(r *recorder, check *sim.Checker, at time.Duration, e entry) {
	l, ok := r.lanes[e.node]
	if !ok || l.now.Process == history.Down {
		return
	}
	if e.transition.Reason == elector.Started {
		check.Gone(e.node)
		r.broken(at, check.Booted(e.node, e.transition.Term))
	}
	r.broken(at, check.Transition(e.node, e.transition))
	r.transition(at, e.node, e.transition)
	r.lease(e.node, history.Forever) // a live leader steps down by itself when its lease ends
}

// broken notes a violation, if v is one.
func (r *recorder) broken(at time.Duration, v *sim.Violation) {
	if v != nil {
		r.h.Broken = append(r.h.Broken, fmt.Sprintf("%s violated at %s: %s", v.Rule, at, v.Detail))
	}
}

// twoLeases finds leaders whose time overlaps though the lease of the first did
// not run out: when that happened is not logged, only when its holder noticed.
func twoLeases(h *history.History) (broken []string) {
	if h.NoLease {
		return nil
	}
	var spans []history.Span
	for i := range h.Lanes {
		for _, s := range h.Lanes[i].Spans {
			if s.Role == elector.Leader && !expired(&h.Lanes[i], s.To) {
				s.To = min(s.To, s.LeaseUntil)
				spans = append(spans, s)
			}
		}
	}
	slices.SortFunc(spans, func(a, b history.Span) int { return int(a.From - b.From) })
	for i, s := range spans {
		for _, later := range spans[i+1:] {
			if later.From < s.To && later.Leader != s.Leader {
				broken = append(broken, fmt.Sprintf("I2 violated: %s led from %s to %s, and %s from %s",
					s.Leader, s.From, s.To, later.Leader, later.From))
			}
		}
	}
	return broken
}

// expired reports whether the node noticed at that moment that its lease had run out.
func expired(l *history.Lane, at time.Duration) bool {
	return slices.ContainsFunc(l.Transitions, func(t history.Transition) bool {
		return t.At == at && t.Reason == elector.LeaseExpired
	})
}

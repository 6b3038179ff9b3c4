package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/lsn"
)

// journal collects what real processes log and what is done to them, from many
// goroutines. In the end it is read in order of time and becomes a history. The
// log is the one source that has a process from its first line to its last,
// whether it ends by SIGTERM or SIGKILL.
type journal struct {
	replay.Journal
	reader
}

// reader makes a history of a journal. Only what is noted may use it: it is there in the end.
type reader struct {
	*replay.Recorder
	check *spec.Cluster
	shift int64 // from real terms to those of the scenario
	start time.Time
	ended []ending
}

// ending is the end of a process: the step that wanted it, and when it was done.
type ending struct {
	node       history.NodeID
	step, done time.Duration
}

// now adds what happens now.
func (j *journal) now(note func(at time.Duration)) { j.Add(time.Now(), note) }

// history is what the journal says, in order of time, with terms shifted to
// those of the scenario.
func (j *journal) history(sc *scenario.Scenario, start time.Time, shift int64) *history.History {
	j.reader = reader{
		Recorder: replay.NewRecorder(sc, "live", 0), shift: shift, start: start,
		check: spec.NewCluster(nil, 0, spec.Checks{
			NoLeases: sc.Election.UnsafeNoScouting, TwoLeaders: sc.Election.UnsafeQuorum,
		}),
	}
	j.Tell(start, time.Now())
	h := j.Finish(sc.Duration)
	h.Broken = append(h.Broken, twoLeases(h)...)
	for _, e := range j.ended {
		e.endReign(h)
	}
	return h
}

// endReign lets a leader lead until the step that ends it, as in the simulator, where that
// takes no time. An expectation from the step on is about who leads then.
func (e ending) endReign(h *history.History) {
	l := h.Lane(e.node)
	for i := range l.Spans {
		if s := &l.Spans[i]; s.From < e.done && s.To > e.step {
			s.LeaseUntil = min(s.LeaseUntil, e.step)
		}
	}
}

// line notes what a process logs: transitions, and what no process should say.
func (j *journal) line(l procs.Line) {
	e, ok := l.Transition()
	if !ok {
		declared := strings.Contains(l.Text, "voters were declared lost") // by the scenario
		if l.Level == "" || l.Level == "error" && !declared {
			problem := fmt.Sprintf("%s said: %s", l.Node, l.Text)
			j.Add(l.Time, func(time.Duration) {
				j.History.Problems = append(j.History.Problems, problem)
			})
		}
		return
	}
	t := replay.Transition(e.From, e.To, e.Reason)
	t.Term, t.Leader, t.Peer = e.Term, e.Leader, e.Peer
	j.transition(e.Time, e.Node, t)
}

// transition notes a change of role or leader. What a process logged as it was
// killed comes too late to count.
func (j *journal) transition(at time.Time, id cluster.NodeID, t elector.Transition) {
	j.Add(at, func(at time.Duration) {
		if j.Now(id).Process == history.Down {
			return
		}
		t.Term = lsn.Term(max(int64(t.Term)+j.shift, 0))
		if t.Reason == elector.Started {
			j.check.Gone(id)
			disk := elector.Terms{Entered: t.Term, Reserved: t.Term} // at least
			j.violated(at, j.check.Booted(id, disk))
		}
		j.violated(at, j.check.Transition(id, t))
		j.Transition(at, id, t, "")
		j.Lease(id, history.Forever) // a live leader steps down by itself when its lease ends
	})
}

// violated notes a violation, if v is one.
func (r *reader) violated(at time.Duration, v *spec.Violation) {
	if v != nil {
		r.History.Broken = append(r.History.Broken, fmt.Sprintf("%s violated at %s: %s", v.Rule, at,
			v.Detail))
	}
}

// up notes that a process is started or goes on, just before it is.
func (j *journal) up(id cluster.NodeID) {
	j.now(func(at time.Duration) {
		if was := j.Now(id); was.Process == history.Down {
			j.Start(at, id, was.Term)
		} else {
			j.Resume(at, id)
		}
	})
}

// down notes that a process is killed or has stopped, by a step of that time.
func (j *journal) down(id cluster.NodeID, step time.Time) {
	j.now(func(at time.Duration) {
		j.End(at, id)
		j.ended = append(j.ended, ending{id, step.Sub(j.start), at})
	})
}

// wiped notes that a node lost its disk.
func (j *journal) wiped(id cluster.NodeID) {
	j.now(func(at time.Duration) {
		j.check.Wiped(id)
		j.Wipe(at, id)
	})
}

// paused notes a pause: the lease that the node may hold runs out by itself.
func (j *journal) paused(id cluster.NodeID, lease time.Duration) {
	j.now(func(at time.Duration) { j.Pause(at, id, lease) })
}

// mark notes a step of the timeline. What is returned notes later why it had no effect.
func (j *journal) mark(step *scenario.Step, note string) (later func(note string)) {
	var set func(string)
	j.now(func(time.Duration) { set = j.Mark(step.At, step.Text, note) })
	return func(note string) { j.now(func(time.Duration) { set(note) }) }
}

// shown notes the newest committed record that a node knows, as its terms are.
func (j *journal) shown(id cluster.NodeID, at lsn.LSN, value []byte, voters []cluster.Voter) {
	r := history.Record{LSN: at, Value: string(value)}
	for _, v := range voters {
		r.Voters = append(r.Voters, v.Node)
	}
	j.now(func(at time.Duration) {
		if j.Now(id).Process != history.Down && j.Now(id).Shown != r.LSN {
			j.Shown(at, id, r)
		}
	})
}

// cuts notes which directions are cut from now on.
func (j *journal) cuts(pairs []scenario.Pair) {
	j.now(func(at time.Duration) { j.CutOnly(at, pairs) })
}

// twoLeases finds leaders whose times overlap although the lease of the first did not run
// out. A log does not say when a lease ran out, only when its holder noticed it.
func twoLeases(h *history.History) (broken []string) {
	if h.NoLease {
		return nil
	}
	var spans []history.Span
	for _, l := range h.Lanes {
		for _, s := range l.Spans {
			expired := slices.ContainsFunc(l.Transitions, func(t history.Transition) bool {
				return t.At == s.To && t.Reason == elector.LeaseExpired
			})
			if s.Role == elector.Leader && !expired {
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

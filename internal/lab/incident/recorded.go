package incident

import (
	"cmp"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/lsn"
)

// change is something that changes a lane.
type change struct {
	at time.Time
	do func(at time.Duration)
}

// recorded is what the nodes recorded from Start to End: roles, leaders and terms as they
// noted them. Starts, ends, pauses and cuts are the steps that follow from the records, as the
// replay has them. Of a node without a recording it has what the others saw: when it was down,
// and when it led.
func (in *Incident) recorded(sc *scenario.Scenario, replayed *history.History) *history.History {
	r := replay.NewRecorder(sc, "recorded", 0)
	for _, node := range in.nodes {
		changes := slices.Concat(in.processChanges(r, node), in.roleChanges(r, node))
		slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
		for _, c := range changes {
			if !c.at.After(in.End) {
				c.do(c.at.Sub(in.Start))
			}
		}
	}
	h := r.Finish(sc.Duration)
	h.Variant, h.Marks, h.Cuts = "recorded", replayed.Marks, replayed.Cuts
	for i := range h.Lanes {
		l, sighted := &h.Lanes[i], in.source(in.nodes[i]).bySight
		l.Transitions = slices.DeleteFunc(l.Transitions, func(t history.Transition) bool {
			return t.At < 0 || sighted
		})
		l.Spans = slices.DeleteFunc(l.Spans, func(s history.Span) bool {
			return sighted && s.Process != history.Down && s.Role != elector.Leader
		})
	}
	return h
}

// processChanges are the starts, ends and pauses of a node.
func (in *Incident) processChanges(r *replay.Recorder, node string) (all []change) {
	name := id(in.name(node))
	lease, _ := time.ParseDuration(in.setup.Elector["lease"])
	start := func(at time.Duration) { r.Start(at, name, r.Now(name).Term) }
	end := func(at time.Duration) { r.End(at, name) }
	do := map[string]func(at time.Duration){"restart": start, "crash": end, "stop": end,
		"pause": func(at time.Duration) {
			r.Change(at, name, func(s *history.Span) {
				s.Process, s.LeaseUntil = history.Paused, min(s.LeaseUntil, at+lease)
			})
		},
		"resume": func(at time.Duration) {
			r.Change(at, name, func(s *history.Span) { s.Process = history.Up })
			if r.Now(name).LeaseUntil > at {
				r.Lease(name, history.Forever)
			}
		},
	}
	if lives := in.lives[node]; len(lives) > 0 && !lives[0].started {
		all = append(all, change{lives[0].from, start})
	}
	for _, s := range in.all {
		if do[s.Do] != nil && slices.Contains(s.Nodes, node) {
			all = append(all, change{s.At, do[s.Do]})
		}
	}
	return all
}

// roleChanges are the transitions that a node recorded, or when it led as the others saw it.
// Recordings have no leases: a leader steps down by itself when its lease ends.
func (in *Incident) roleChanges(r *replay.Recorder, node string) (all []change) {
	name := id(in.name(node))
	add := func(at time.Time, t elector.Transition, term uint64) {
		t.Term = lsn.Term(term)
		all = append(all, change{at, func(at time.Duration) {
			if r.Now(name).Process != history.Down {
				r.Transition(at, name, t, "")
				r.Lease(name, history.Forever)
			}
		}})
	}
	s := in.source(node)
	for _, rec := range s.Records {
		if rec.Kind == recording.Transition && rec.Group == in.Group {
			t := replay.Transition(rec.From, rec.To, rec.Reason)
			t.Leader, t.Peer = id(in.name(rec.Leader)), id(in.name(rec.Peer))
			add(rec.Time, t, rec.Term)
		}
	}
	for _, l := range in.Led {
		if s.bySight && l.Leader == node {
			add(l.From, elector.Transition{To: elector.Leader, Leader: name}, l.Term)
			add(cmp.Or(l.To, forever), elector.Transition{To: elector.Follower}, l.Term)
		}
	}
	return all
}

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
		l := &h.Lanes[i]
		untold := in.source(in.nodes[i]) == nil
		l.Transitions = slices.DeleteFunc(l.Transitions, func(t history.Transition) bool {
			return t.At < 0 || untold
		})
		l.Spans = slices.DeleteFunc(l.Spans, func(s history.Span) bool {
			return untold && s.Process != history.Down && s.Role != elector.Leader
		})
	}
	return h
}

// processChanges are the starts, ends and pauses of a node.
func (in *Incident) processChanges(r *replay.Recorder, node string) (all []change) {
	name := id(in.name(node))
	lease, _ := time.ParseDuration(in.setup.Elector["lease"])
	for i, l := range in.lives[node] {
		all = append(all, change{l.from, func(at time.Duration) {
			if i > 0 && !l.started {
				r.Change(at, name, func(s *history.Span) { s.Process = history.Up })
				if r.Now(name).LeaseUntil > at {
					r.Lease(name, history.Forever)
				}
				return
			}
			r.Start(at, name, r.Now(name).Term)
		}})
		switch l.ended {
		case "":
		case "pause":
			all = append(all, change{l.to, func(at time.Duration) {
				r.Change(at, name, func(s *history.Span) {
					s.Process, s.LeaseUntil = history.Paused, min(s.LeaseUntil, at+lease)
				})
			}})
		default:
			all = append(all, change{l.to, func(at time.Duration) { r.End(at, name) }})
		}
	}
	return all
}

// roleChanges are the transitions that a node recorded, or when it led as the others saw it.
// Recordings do not tell leases: a leader steps down by itself when its lease ends.
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
	if s == nil {
		for _, l := range in.Led {
			if l.Leader == node {
				add(l.From, elector.Transition{To: elector.Leader, Leader: name}, l.Term)
				add(cmp.Or(l.To, in.End.Add(1)), elector.Transition{To: elector.Follower}, l.Term)
			}
		}
		return all
	}
	for _, rec := range s.Records {
		if rec.Kind == recording.Transition && rec.Group == in.o.Group {
			t := replay.Transition(rec.From, rec.To, rec.Reason)
			t.Leader, t.Peer = in.nameOrNone(rec.Leader), in.nameOrNone(rec.Peer)
			add(rec.Time, t, rec.Term)
		}
	}
	return all
}

// nameOrNone is a node's name as the format has it; "" stays.
func (in *Incident) nameOrNone(node string) scenario.NodeID {
	if node == "" {
		return ""
	}
	return id(in.name(node))
}

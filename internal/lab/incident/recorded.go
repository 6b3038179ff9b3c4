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

// recorded is what the nodes recorded from Start to End: roles, leaders and terms as they
// noted them. Starts, ends, pauses and cuts are the steps that follow from the records, as the
// replay has them. Of a node without a recording it has what the others saw: when it was down,
// and when it led.
func (in *Incident) recorded(sc *scenario.Scenario, replayed *history.History) *history.History {
	r, j := replay.NewRecorder(sc, "recorded", 0), &replay.Journal{}
	for _, node := range in.nodes {
		in.processChanges(j, r, node)
		in.roleChanges(j, r, node)
	}
	j.Tell(in.Start, in.End)
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

// processChanges adds the starts, ends and pauses of a node.
func (in *Incident) processChanges(j *replay.Journal, r *replay.Recorder, node string) {
	name := id(in.name(node))
	lease, _ := time.ParseDuration(in.setup.Elector["lease"])
	start := func(at time.Duration) { r.Start(at, name, r.Now(name).Term) }
	end := func(at time.Duration) { r.End(at, name) }
	do := map[string]func(at time.Duration){"restart": start, "crash": end, "stop": end,
		"pause":  func(at time.Duration) { r.Pause(at, name, lease) },
		"resume": func(at time.Duration) { r.Resume(at, name) },
	}
	if lives := in.lives[node]; len(lives) > 0 && !lives[0].started {
		j.Add(lives[0].from, start)
	}
	for _, s := range in.all {
		if do[s.Do] != nil && slices.Contains(s.Nodes, node) {
			j.Add(s.At, do[s.Do])
		}
	}
}

// roleChanges adds the transitions that a node recorded, or when it led as the others saw it.
// Recordings have no leases: a leader steps down by itself when its lease ends.
func (in *Incident) roleChanges(j *replay.Journal, r *replay.Recorder, node string) {
	name := id(in.name(node))
	add := func(at time.Time, t elector.Transition, term uint64) {
		t.Term = lsn.Term(term)
		j.Add(at, func(at time.Duration) {
			if r.Now(name).Process != history.Down {
				r.Transition(at, name, t, "")
				r.Lease(name, history.Forever)
			}
		})
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
}

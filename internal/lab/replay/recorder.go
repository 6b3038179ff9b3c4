package replay

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/lsn"
)

// recorder builds a history from what happens, told in order of time.
type recorder struct {
	h     *history.History
	lanes map[history.NodeID]*lane
	cuts  map[scenario.Pair]time.Duration // since when
	order []scenario.Pair                 // of cuts, for a stable history
}

// lane is a node's state now, which becomes a span when it changes.
type lane struct {
	*history.Lane
	now history.Span
}

func newRecorder(sc *scenario.Scenario, mode string, seed uint64) *recorder {
	r := &recorder{
		h: &history.History{
			Scenario: sc.Name, Mode: mode, Seed: seed, Duration: sc.Duration,
			Quorum: sc.Election.QuorumSize(), NoLease: sc.Election.UnsafeNoScouting,
		},
		lanes: map[history.NodeID]*lane{}, cuts: map[scenario.Pair]time.Duration{},
	}
	r.h.Lanes = make([]history.Lane, len(sc.Nodes))
	for i, n := range sc.Nodes {
		r.h.Lanes[i] = history.Lane{Node: n.ID, Voter: !n.Observer, Candidate: !n.Observer && !n.NotCandidate}
		r.lanes[n.ID] = &lane{Lane: &r.h.Lanes[i], now: history.Span{From: longAgo, Term: n.Term, MaxTerm: n.Term}}
	}
	return r
}

// longAgo is before everything that happens to a scenario.
const longAgo = -24 * time.Hour

// become changes a node's state at a moment; what it was until then is a span.
func (r *recorder) become(at time.Duration, id history.NodeID, change func(*history.Span)) {
	l, ok := r.lanes[id]
	if !ok {
		return
	}
	next := l.now
	change(&next)
	next.From = at
	if at > l.now.From {
		l.now.To = at
		l.Spans = append(l.Spans, l.now)
	}
	l.now = next
}

// started, gone, paused and resumed tell of the process.
func (r *recorder) started(at time.Duration, id history.NodeID, term lsn.Term) {
	r.become(at, id, func(s *history.Span) {
		*s = history.Span{Process: history.Up, Term: term, MaxTerm: term}
	})
}

func (r *recorder) gone(at time.Duration, id history.NodeID) {
	r.become(at, id, func(s *history.Span) {
		*s = history.Span{Process: history.Down, Term: s.Term, MaxTerm: s.MaxTerm}
	})
}

func (r *recorder) process(at time.Duration, id history.NodeID, p history.Process) {
	r.become(at, id, func(s *history.Span) { s.Process = p })
}

// transition tells of a change of role or leader.
func (r *recorder) transition(at time.Duration, id history.NodeID, t elector.Transition) {
	l, ok := r.lanes[id]
	if !ok {
		return
	}
	l.Transitions = append(l.Transitions, history.Transition{At: at, Transition: t})
	r.become(at, id, func(s *history.Span) {
		s.Role, s.Term, s.Leader = t.To, t.Term, t.Leader
		s.MaxTerm = max(s.MaxTerm, t.Term)
		switch {
		case t.To != elector.Leader:
			s.LeaseUntil = 0
		case r.h.NoLease:
			s.LeaseUntil = history.Forever
		}
	})
}

// term tells that a node is in that term now, if it was not in a higher one.
func (r *recorder) term(at time.Duration, id history.NodeID, term lsn.Term) {
	if l, ok := r.lanes[id]; ok && term > l.now.MaxTerm {
		r.become(at, id, func(s *history.Span) { s.MaxTerm = term })
	}
}

// lease tells that the node's lease, if it leads, runs until then.
func (r *recorder) lease(id history.NodeID, until time.Duration) {
	if l, ok := r.lanes[id]; ok && l.now.Role == elector.Leader {
		l.now.LeaseUntil = max(l.now.LeaseUntil, until)
	}
}

// cut and heal tell of one direction of a link.
func (r *recorder) cut(at time.Duration, p scenario.Pair) {
	if _, ok := r.cuts[p]; !ok {
		r.cuts[p] = at
		r.order = append(r.order, p)
	}
}

func (r *recorder) heal(at time.Duration, p scenario.Pair) {
	start, ok := r.cuts[p]
	if !ok {
		return
	}
	r.h.Cuts = append(r.h.Cuts, history.Cut{From: p.From, To: p.To, Start: start, End: at})
	delete(r.cuts, p)
	r.order = slices.DeleteFunc(r.order, func(q scenario.Pair) bool { return q == p })
}

func (r *recorder) mark(at time.Duration, text, note string) {
	r.h.Marks = append(r.h.Marks, history.Mark{At: at, Text: text, Note: note})
}

// sent counts messages.
func (r *recorder) sent(at time.Duration) {
	if at < 0 {
		return
	}
	bucket := at / history.BucketSize * history.BucketSize
	if n := len(r.h.Sent); n > 0 && r.h.Sent[n-1].At == bucket {
		r.h.Sent[n-1].Count++
		return
	}
	r.h.Sent = append(r.h.Sent, history.Bucket{At: bucket, Count: 1})
}

// finish ends the history at a moment.
func (r *recorder) finish(at time.Duration) *history.History {
	r.h.Duration = at
	for i := range r.h.Lanes {
		l := r.lanes[r.h.Lanes[i].Node]
		l.now.To = at + 1 // the last moment belongs to the run
		l.Spans = append(l.Spans, l.now)
	}
	for _, p := range slices.Clone(r.order) {
		r.heal(at, p)
	}
	return r.h
}

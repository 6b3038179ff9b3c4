package replay

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/lsn"
)

// Recorder builds a history from what happens to a scenario. Its methods are
// called in order of time; calls for nodes that the scenario does not have are
// ignored.
type Recorder struct {
	History *history.History // complete once Finish has returned it

	lanes map[history.NodeID]*lane
	cuts  []history.Cut // that have not ended
}

// lane is a node's state now, which becomes a span when it changes.
type lane struct {
	*history.Lane
	now history.Span
}

// longAgo is before everything that happens to a scenario.
const longAgo = -24 * time.Hour

// NewRecorder begins the history of a run. All nodes are down at first.
func NewRecorder(sc *scenario.Scenario, mode string, seed uint64) *Recorder {
	r := &Recorder{lanes: map[history.NodeID]*lane{}, History: &history.History{
		Scenario: sc.Name, Mode: mode, Seed: seed, Duration: sc.Duration,
		Quorum: sc.Election.QuorumSize(), Inactivity: sc.Election.Timing.Inactivity(),
		NoLease: sc.Election.UnsafeNoScouting, Lanes: make([]history.Lane, len(sc.Nodes)),
	}}
	for i, n := range sc.Nodes {
		l := &r.History.Lanes[i]
		*l = history.Lane{Node: n.ID, Voter: !n.Observer, Candidate: !n.Observer && !n.NotCandidate}
		r.lanes[n.ID] = &lane{l, history.Span{From: longAgo, Term: n.Term, MaxTerm: n.Term}}
	}
	return r
}

// AddStore begins the life of the store that the members ask for a lease.
func (r *Recorder) AddStore(id history.NodeID) {
	r.History.Store = &history.Lane{Node: id}
	r.lanes[id] = &lane{r.History.Store, history.Span{From: longAgo}}
}

// Now is a node's state now, the zero Span if there is no such node.
func (r *Recorder) Now(id history.NodeID) history.Span {
	if l := r.lanes[id]; l != nil {
		return l.now
	}
	return history.Span{}
}

// Change changes a node's state at a moment; what it was until then is a span.
func (r *Recorder) Change(at time.Duration, id history.NodeID, change func(*history.Span)) {
	l := r.lanes[id]
	if l == nil {
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

// Start says that a process starts with that term on its disk.
func (r *Recorder) Start(at time.Duration, id history.NodeID, term lsn.Term) {
	r.Change(at, id, func(s *history.Span) {
		*s = history.Span{Process: history.Up, Term: term, MaxTerm: term}
	})
}

// End says that a process ended; its disk stays.
func (r *Recorder) End(at time.Duration, id history.NodeID) {
	r.Change(at, id, func(s *history.Span) {
		*s = history.Span{Process: history.Down, Term: s.Term, MaxTerm: s.MaxTerm}
	})
}

// Wipe says that a node lost its disk.
func (r *Recorder) Wipe(at time.Duration, id history.NodeID) {
	r.Change(at, id, func(s *history.Span) { *s = history.Span{} })
}

// Pause says that a process is paused, of which is not known when a lease of its ends: it runs out
// by itself, lease after this.
func (r *Recorder) Pause(at time.Duration, id history.NodeID, lease time.Duration) {
	r.Change(at, id, func(s *history.Span) {
		if s.Process = history.Paused; s.LeaseUntil == history.Forever && !r.History.NoLease {
			s.LeaseUntil = at + lease
		}
	})
}

// Resume says that such a process goes on. If its lease may still run, what it had before holds
// again: it steps down by itself if it does not.
func (r *Recorder) Resume(at time.Duration, id history.NodeID) {
	r.Change(at, id, func(s *history.Span) {
		if s.Process = history.Up; at < s.LeaseUntil {
			s.LeaseUntil = history.Forever
		}
	})
}

// Transition notes a change of role or leader; why is "" where its Reason says it.
func (r *Recorder) Transition(
	at time.Duration, id history.NodeID, t elector.Transition, why string,
) {
	l := r.lanes[id]
	if l == nil {
		return
	}
	l.Transitions = append(l.Transitions, history.Transition{At: at, Transition: t, Why: why})
	r.Change(at, id, func(s *history.Span) {
		s.Role, s.Term, s.Leader = t.To, t.Term, t.Leader
		s.MaxTerm = max(s.MaxTerm, t.Term)
		switch {
		case t.To != elector.Leader:
			s.LeaseUntil = 0
		case r.History.NoLease:
			s.LeaseUntil = history.Forever
		}
	})
}

// Accepted says which record is the newest that a node has.
func (r *Recorder) Accepted(at time.Duration, id history.NodeID, rec history.Record) {
	r.know(rec)
	r.Change(at, id, func(s *history.Span) { s.Accepted = rec.LSN })
}

// Shown says which record is the newest that a node knows to be committed.
func (r *Recorder) Shown(at time.Duration, id history.NodeID, rec history.Record) {
	r.know(rec)
	r.Change(at, id, func(s *history.Span) {
		s.Shown = rec.LSN
		if s.Accepted.Less(rec.LSN) {
			s.Accepted = rec.LSN
		}
	})
}

// know notes a version. That an LSN has one content is an invariant of the protocol.
func (r *Recorder) know(rec history.Record) {
	h := r.History
	switch known := h.Record(rec.LSN); {
	case rec.LSN == lsn.LSN{}:
	case known.LSN != rec.LSN:
		h.Records = append(h.Records, rec)
	case known.Value != rec.Value || !slices.Equal(known.Voters, rec.Voters):
		h.Broken = append(h.Broken, fmt.Sprintf("V1 violated: %s is %v and %v", rec.LSN, known, rec))
	}
}

// Lease says that the node's lease, if it leads, runs until then at least.
func (r *Recorder) Lease(id history.NodeID, until time.Duration) {
	if l := r.lanes[id]; l != nil && l.now.Role == elector.Leader {
		l.now.LeaseUntil = max(l.now.LeaseUntil, until)
	}
}

// Cut says that a direction is silent from now on, if it was not before.
func (r *Recorder) Cut(at time.Duration, p scenario.Pair) {
	known := r.lanes[p.From] != nil && r.lanes[p.To] != nil
	if known && r.openCut(p) < 0 {
		r.cuts = append(r.cuts, history.Cut{From: p.From, To: p.To, Start: at})
	}
}

// Heal ends a cut, if there is one.
func (r *Recorder) Heal(at time.Duration, p scenario.Pair) {
	if i := r.openCut(p); i >= 0 {
		ended := r.cuts[i]
		ended.End = at
		cuts := &r.History.Cuts
		if h := r.History; h.Store != nil && (h.Store.Node == p.From || h.Store.Node == p.To) {
			cuts = &h.StoreCuts
		}
		*cuts = append(*cuts, ended)
		r.cuts = slices.Delete(r.cuts, i, i+1)
	}
}

// CutOnly says that exactly these directions are silent from now on.
func (r *Recorder) CutOnly(at time.Duration, pairs []scenario.Pair) {
	for _, c := range slices.Clone(r.cuts) {
		if p := (scenario.Pair{From: c.From, To: c.To}); !slices.Contains(pairs, p) {
			r.Heal(at, p)
		}
	}
	for _, p := range pairs {
		r.Cut(at, p)
	}
}

func (r *Recorder) openCut(p scenario.Pair) int {
	is := func(c history.Cut) bool { return c.From == p.From && c.To == p.To }
	return slices.IndexFunc(r.cuts, is)
}

// Mark notes a step of the timeline; note says why it had no effect. What is returned notes that
// later.
func (r *Recorder) Mark(at time.Duration, text, note string) (later func(note string)) {
	i := len(r.History.Marks)
	r.History.Marks = append(r.History.Marks, history.Mark{At: at, Text: text, Note: note})
	return func(note string) { r.History.Marks[i].Note = note }
}

// Sent counts a message.
func (r *Recorder) Sent(at time.Duration) {
	if at < 0 {
		return
	}
	h, bucket := r.History, at/history.BucketSize*history.BucketSize
	if n := len(h.Sent); n > 0 && h.Sent[n-1].At == bucket {
		h.Sent[n-1].Count++
		return
	}
	h.Sent = append(h.Sent, history.Bucket{At: bucket, Count: 1})
}

// Finish ends the history at a moment.
func (r *Recorder) Finish(at time.Duration) *history.History {
	r.History.Duration = at
	for l := range maps.Values(r.lanes) {
		l.now.To = at + 1 // the last moment belongs to the run
		l.Spans = append(l.Spans, l.now)
	}
	r.CutOnly(at, nil)
	return r.History
}

// Transition reads the roles and the reason of a transition as processes write them.
func Transition(from, to, reason string) elector.Transition {
	return elector.Transition{From: roles[from], To: roles[to], Reason: reasons[reason]}
}

// roles and reasons are what processes write.
var roles, reasons = func() (map[string]elector.Role, map[string]elector.Reason) {
	roles, reasons := map[string]elector.Role{}, map[string]elector.Reason{}
	for r := elector.Dormant; r <= elector.Leader; r++ {
		roles[r.String()] = r
	}
	for r := elector.ReasonNone; r.Valid(); r++ {
		reasons[r.String()] = r
	}
	return roles, reasons
}()

package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// elections counts how often a node began to hold itself for the leader.
func (h *History) elections(from, to time.Duration) (n int) {
	for i := range h.Lanes {
		was := false
		for _, s := range h.Lanes[i].Spans {
			is := s.Process != Down && s.Role == elector.Leader
			if is && !was && s.From >= from && s.From < to {
				n++
			}
			was = is
		}
	}
	return n
}

// needless counts the leaders that were deposed after from although they were well: the one that
// led last does not hold itself for the leader any more, or another one leads.
func (h *History) needless(from, to time.Duration) (n int) {
	last := NodeID("")
	for _, t := range h.Moments(min(h.beginning(), from), to) {
		leader := h.LeaderAt(t)
		deposed := last != "" && (leader != last && leader != "" || !h.Lane(last).leads(t))
		if deposed && t > from && h.wasWell(last, t-2*h.Inactivity, t) && !h.Lane(last).asked(t) {
			n++
		}
		if deposed || leader != "" {
			last = leader
		}
	}
	return n
}

// wasWell reports whether a node ran from one moment to another, and reached what it needs to
// act: the store, or a quorum that ran as well.
func (h *History) wasWell(id NodeID, from, to time.Duration) bool {
	apart, voters := h.apart(id, from, to), 0
	all, quorum := h.electorate(h.Lane(id).At(from).Accepted)
	for i := range h.Lanes {
		l := &h.Lanes[i]
		if slices.Contains(all, l.Node) && !apart[l.Node] && l.ran(from, to) {
			voters++
		}
	}
	if h.Store != nil {
		return h.Lane(id).ran(from, to) && h.Store.ran(from, to) && !apart[h.Store.Node]
	}
	return h.Lane(id).ran(from, to) && voters >= quorum
}

// ran reports whether the node's process ran from one moment to another.
func (l *Lane) ran(from, to time.Duration) bool {
	first, _ := l.find(from)
	for _, s := range l.Spans[first:] {
		if s.From > to {
			break
		}
		if s.Process != Up {
			return false
		}
	}
	return true
}

// asked reports whether the leadership that a node lost last was handed over, resigned or
// stopped.
func (l *Lane) asked(t time.Duration) bool {
	later, _ := slices.BinarySearchFunc(l.Transitions, t+1, func(tr Transition, t time.Duration) int {
		return cmp.Compare(tr.At, t)
	})
	for _, tr := range slices.Backward(l.Transitions[:later]) {
		if tr.From == elector.Leader {
			return tr.Reason == elector.Transferred || tr.Reason == elector.Resigned ||
				tr.To == elector.Dormant || tr.Why == "stop"
		}
	}
	return false
}

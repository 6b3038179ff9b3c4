package history

import (
	"slices"
	"time"
)

// At is the node's state at a moment within the run.
func (l *Lane) At(t time.Duration) Span {
	i, found := slices.BinarySearchFunc(l.Spans, t, func(s Span, t time.Duration) int {
		switch {
		case s.To <= t:
			return -1
		case s.From > t:
			return 1
		}
		return 0
	})
	if !found {
		return Span{From: t, To: t}
	}
	return l.Spans[i]
}

// Lane returns the lane of a node, nil if there is none.
func (h *History) Lane(id NodeID) *Lane {
	for i := range h.Lanes {
		if h.Lanes[i].Node == id {
			return &h.Lanes[i]
		}
	}
	return nil
}

// LeaderAt is the node that leads at a moment: its role is LEADER, its lease is
// valid, and as many voters as a quorum has, itself included, follow it; "" if
// none does. A paused leader leads for as long as its lease runs.
func (h *History) LeaderAt(t time.Duration) NodeID {
	for i := range h.Lanes {
		if id := h.Lanes[i].Node; h.Lanes[i].leads(t) && h.FollowersAt(id, t) >= h.Quorum {
			return id
		}
	}
	return ""
}

// leads reports whether the node has the role and a valid lease.
func (l *Lane) leads(t time.Duration) bool {
	s := l.At(t)
	return s.Process != Down && s.Leader == l.Node && t < s.LeaseUntil
}

// FollowersAt counts the voters that follow id at a moment, itself included.
func (h *History) FollowersAt(id NodeID, t time.Duration) int {
	count := 0
	for i := range h.Lanes {
		if s := h.Lanes[i].At(t); h.Lanes[i].Voter && s.Process != Down && s.Leader == id {
			count++
		}
	}
	return count
}

// Reign is a time in which one node leads, or none does.
type Reign struct {
	From, To time.Duration
	Leader   NodeID // "" for none
}

// Reigns are the leaders from one moment to another, without gaps.
func (h *History) Reigns(from, to time.Duration) []Reign {
	moments := h.moments(from, to)
	var reigns []Reign
	for i, t := range moments {
		end := to
		if i+1 < len(moments) {
			end = moments[i+1]
		}
		leader := h.LeaderAt(t)
		if n := len(reigns); n > 0 && reigns[n-1].Leader == leader {
			reigns[n-1].To = end
			continue
		}
		reigns = append(reigns, Reign{From: t, To: end, Leader: leader})
	}
	return reigns
}

// moments are the times in [from, to) at which who leads may change: the
// beginnings of spans and the ends of leases, and from.
func (h *History) moments(from, to time.Duration) []time.Duration {
	all := []time.Duration{from}
	for _, l := range h.Lanes {
		for _, s := range l.Spans {
			for _, t := range []time.Duration{s.From, s.LeaseUntil} {
				if t > from && t < to {
					all = append(all, t)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

package history

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Summary is a run in figures.
type Summary struct {
	// times that a node led which was not the last to have led; the first leader is no change
	LeaderChanges int
	// times that a running leader lost leadership otherwise than by a stop, a transfer or a resignation
	Demotions    int
	Leaderless   time.Duration
	Availability float64 // share of the time with a leader, 0 to 1
	MaxTerm      lsn.Term
	Messages     int
	// Failovers are the times without a leader between two different leaders.
	Failovers []time.Duration
}

// Summarize computes the figures of a window.
func (h *History) Summarize(from, to time.Duration) Summary {
	s := Summary{Messages: h.MessagesIn(from, to), Demotions: h.demotions(from, to),
		MaxTerm: h.MaxTermIn(from, to)}
	last, gap := h.lastLeader(from), time.Duration(0)
	for _, r := range h.Reigns(from, to) {
		if r.Leader == "" {
			gap += r.To - r.From
			s.Leaderless += r.To - r.From
			continue
		}
		if last != "" && r.Leader != last {
			s.LeaderChanges++
			s.Failovers = append(s.Failovers, gap)
		}
		last, gap = r.Leader, 0
	}
	s.Availability = 1
	if to > from {
		s.Availability = 1 - float64(s.Leaderless)/float64(to-from)
	}
	return s
}

// lastLeader is who led last before a moment; "" if nobody ever did.
func (h *History) lastLeader(before time.Duration) NodeID {
	last := NodeID("")
	for _, r := range h.Reigns(h.Beginning(), before) {
		if r.Leader != "" {
			last = r.Leader
		}
	}
	return last
}

// Beginning is the time of the first thing that is known, at or before 0.
func (h *History) Beginning() time.Duration {
	first := time.Duration(0)
	for _, l := range h.Lanes {
		for _, t := range l.Transitions {
			first = min(first, t.At)
		}
	}
	return first
}

// demotions counts leaders that stepped down though they ran on and nobody
// asked them to.
func (h *History) demotions(from, to time.Duration) int {
	n := 0
	for _, l := range h.Lanes {
		for _, t := range l.Transitions {
			asked := t.Reason == elector.Transferred || t.Reason == elector.Resigned
			if t.At >= from && t.At < to && t.From == elector.Leader && t.To == elector.Follower && !asked {
				n++
			}
		}
	}
	return n
}

// MaxTermIn is the highest term of any node in a window.
func (h *History) MaxTermIn(from, to time.Duration) lsn.Term {
	var highest lsn.Term
	for _, l := range h.Lanes {
		for _, s := range l.Spans {
			if s.From < to && s.To > from {
				highest = max(highest, s.MaxTerm, s.Term)
			}
		}
	}
	return highest
}

// MessagesIn counts the messages sent in a window, to the accuracy of BucketSize.
func (h *History) MessagesIn(from, to time.Duration) int {
	n := 0
	for _, b := range h.Sent {
		if b.At >= from && b.At < to {
			n += b.Count
		}
	}
	return n
}

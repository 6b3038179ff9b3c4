package history

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Summary is a run in figures.
type Summary struct {
	// times that a node led which was not the last to have led; the first leader is no change
	LeaderChanges int
	// Demotions are leaders that lost the leadership without need: for two inactivity intervals
	// they had run and reached what they need to act, and nobody asked them to go.
	Demotions    int
	Elections    int           // times that a node began to hold itself for the leader
	Leaderless   time.Duration // without a leader as LeaderAt says it
	Overlap      time.Duration // with two nodes or more that hold themselves for the leader
	Availability float64       // share of the time with a leader, 0 to 1
	MaxTerm      lsn.Term
	Messages     int
	// Failovers are the times without a leader between two different leaders.
	Failovers []time.Duration
}

// Summarize computes the figures of a window.
func (h *History) Summarize(from, to time.Duration) Summary {
	s := Summary{Messages: h.MessagesIn(from, to), Demotions: h.needless(from, to),
		Elections: h.elections(from, to), MaxTerm: h.MaxTermIn(from, to), Availability: 1}
	moments := append(h.Moments(from, to), to)
	for i, t := range moments[:len(moments)-1] {
		if len(h.ClaimantsAt(t)) > 1 {
			s.Overlap += moments[i+1] - t
		}
	}
	last, gap := NodeID(""), time.Duration(0)
	for _, r := range h.Reigns(h.beginning(), from) {
		last = cmp.Or(r.Leader, last)
	}
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
	if to > from {
		s.Availability = 1 - float64(s.Leaderless)/float64(to-from)
	}
	return s
}

// beginning is the time of the first thing that is known, at or before 0.
func (h *History) beginning() time.Duration {
	first := time.Duration(0)
	for _, l := range h.Lanes {
		for _, t := range l.Transitions {
			first = min(first, t.At)
		}
	}
	return first
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

// At is the node's state at a moment within the run.
func (l *Lane) At(t time.Duration) Span {
	i, found := l.find(t)
	if !found {
		return Span{From: t, To: t}
	}
	return l.Spans[i]
}

// find is the place of the span that contains a moment, or else of the first one after it.
func (l *Lane) find(t time.Duration) (i int, found bool) {
	i = sort.Search(len(l.Spans), func(i int) bool { return l.Spans[i].To > t })
	return i, i < len(l.Spans) && l.Spans[i].From <= t
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

// LeaderAt is the node that leads at a moment; "" if none does. Its role is LEADER, its lease is
// valid, and voters that it reaches in both directions name it, as many as a quorum has, itself
// included. With a store it must reach the store instead of those voters, for that is what its
// algorithm needs. A paused leader leads for as long as its lease runs.
func (h *History) LeaderAt(t time.Duration) NodeID {
	for i := range h.Lanes {
		if l := &h.Lanes[i]; l.leads(t) && h.follow(l.Node, t) {
			return l.Node
		}
	}
	return ""
}

// follow reports whether a quorum follows a node that has what it needs to act.
func (h *History) follow(id NodeID, t time.Duration) bool {
	apart, count := h.apart(id, t, t), 0
	voters, quorum := h.electorate(h.Lane(id).At(t).Accepted)
	for i := range h.Lanes {
		l := &h.Lanes[i]
		if slices.Contains(voters, l.Node) && l.follows(id, t) && (h.Store != nil || !apart[l.Node]) {
			count++
		}
	}
	return count >= quorum &&
		(h.Store == nil || h.Store.At(t).Process == Up && !apart[h.Store.Node])
}

// apart are those that a node did not reach in both directions all the time from one moment to
// another.
func (h *History) apart(id NodeID, from, to time.Duration) map[NodeID]bool {
	apart := map[NodeID]bool{}
	for _, cuts := range [...][]Cut{h.Cuts, h.StoreCuts} {
		for _, c := range cuts {
			if c.Start <= to && c.End > from && (c.From == id || c.To == id) {
				apart[c.From], apart[c.To] = true, true
			}
		}
	}
	delete(apart, id)
	return apart
}

// leads reports whether the node has the role and a valid lease.
func (l *Lane) leads(t time.Duration) bool {
	s := l.At(t)
	return s.Process != Down && s.Role == elector.Leader && t < s.LeaseUntil
}

// ClaimantsAt are the nodes that hold themselves for the leader at a moment: they have the
// role and a valid lease, whoever follows them.
func (h *History) ClaimantsAt(t time.Duration) (nodes []NodeID) {
	for i := range h.Lanes {
		if h.Lanes[i].leads(t) {
			nodes = append(nodes, h.Lanes[i].Node)
		}
	}
	return nodes
}

func (l *Lane) follows(id NodeID, t time.Duration) bool {
	s := l.At(t)
	return s.Process != Down && s.Leader == id
}

// Record is the version of that LSN; the zero Record if no node has had it.
func (h *History) Record(at lsn.LSN) Record {
	i := slices.IndexFunc(h.Records, func(r Record) bool { return r.LSN == at })
	if i < 0 {
		return Record{}
	}
	return h.Records[i]
}

// electorate are the voters of a record and how many lead; without one, those of the scenario.
func (h *History) electorate(at lsn.LSN) (voters []NodeID, quorum int) {
	if r := h.Record(at); r.LSN != (lsn.LSN{}) {
		return r.Voters, elector.Majority(len(r.Voters))
	}
	for _, l := range h.Lanes {
		if l.Voter {
			voters = append(voters, l.Node)
		}
	}
	return voters, h.Quorum
}

// NewestAt is the newest record that any node shows at a moment, and the voters then.
func (h *History) NewestAt(t time.Duration) (newest Record, voters []NodeID) {
	for i := range h.Lanes {
		if at := h.Lanes[i].At(t).Shown; newest.LSN.Less(at) {
			newest = h.Record(at)
		}
	}
	voters, _ = h.electorate(newest.LSN)
	return newest, voters
}

// Reign is a time in which one node leads, or none does.
type Reign struct {
	From, To time.Duration
	Leader   NodeID // "" for none
}

// Reigns are the leaders from one moment to another, without gaps.
func (h *History) Reigns(from, to time.Duration) []Reign {
	var reigns []Reign
	moments := append(h.Moments(from, to), to)
	for i, t := range moments[:len(moments)-1] {
		leader := h.LeaderAt(t)
		if n := len(reigns); n == 0 || reigns[n-1].Leader != leader {
			reigns = append(reigns, Reign{From: t, Leader: leader})
		}
		reigns[len(reigns)-1].To = moments[i+1]
	}
	return reigns
}

// Moments are the times in [from, to) at which who leads may change: the beginnings of spans, the
// ends of leases, the beginnings and ends of cuts, and from.
func (h *History) Moments(from, to time.Duration) []time.Duration {
	all := []time.Duration{from}
	add := func(moments ...time.Duration) {
		for _, t := range moments {
			if t > from && t < to {
				all = append(all, t)
			}
		}
	}
	for i := range h.Lanes {
		for _, s := range h.Lanes[i].Spans {
			add(s.From, s.LeaseUntil)
		}
	}
	if h.Store != nil {
		for _, s := range h.Store.Spans {
			add(s.From)
		}
	}
	for _, c := range slices.Concat(h.Cuts, h.StoreCuts) {
		add(c.Start, c.End)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

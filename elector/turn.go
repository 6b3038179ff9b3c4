package elector

import (
	"slices"
	"time"
)

// TripToMajority is what Measured says: of the round trips from a voter to others, of which 0
// is not known, the longest to the nearest that are a majority of so many voters with it; 0 if
// none is known. One slow voter does not make all wait longer. It changes trips.
func TripToMajority(trips []time.Duration, voters int) time.Duration {
	known := slices.DeleteFunc(trips, func(d time.Duration) bool { return d <= 0 })
	slices.Sort(known)
	if len(known) == 0 {
		return 0
	}
	return known[min(max(Majority(voters)-1, 1), len(known))-1]
}

// step is the unit of the waits of a node that goes by ranks: §3.14. From when a node asks,
// the others have its proposal after one and a half round trips. 0 if the node does not
// go by ranks, or nothing was measured yet.
func (m *Machine) step() time.Duration {
	t, trip := &m.cfg.Timing, m.state.RoundTrip
	if t.MinRandomWait == 0 || trip <= 0 {
		return 0
	}
	return min(max(2*min(trip, t.MaxRandomWait), t.MinRandomWait), t.MaxRandomWait)
}

// turn is how long this node lets those before it in line go first: §3.14.
func (m *Machine) turn() time.Duration {
	return min(time.Duration(m.rank())*m.step(), m.cfg.Timing.MaxRandomWait)
}

// standInTurn lets the node stand a turn after it is free to.
func (m *Machine) standInTurn() {
	end := max(m.bound(), m.state.Now)
	m.standIn(end.Sub(m.state.Now) + m.turn())
	m.state.Follower.Postponed = end > m.state.Now
}

// rank is the number of connected voters that are before this node in line: §3.14. Nodes
// that see different voters connected may be of one rank: they collide, once at most.
func (m *Machine) rank() int {
	s, rank := &m.state, 0
	for voter, id := range m.cfg.voters {
		first := s.LedLast || id == s.Heir ||
			s.Heir != m.cfg.Self && voter > m.cfg.self
		if first && voter != m.cfg.self && s.Linked.Has(voter) && id != s.LastLeader {
			rank++
		}
	}
	return rank
}

// heir is the successor that a leader names ahead, to nodes that go by ranks: §3.14.
func (m *Machine) heir() NodeID {
	if m.cfg.Timing.MinRandomWait == 0 {
		return ""
	}
	return m.BestSuccessor()
}

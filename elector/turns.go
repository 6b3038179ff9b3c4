package elector

import (
	"math/bits"
	"slices"
	"time"
)

// turns decides when a node stands after it has lost a leader: §3.14. A node lets those before it
// in line go first, and waits at random once an attempt has failed.
type turns struct {
	RoundTrip  time.Duration // of Measured; 0 if unknown
	LastLeader NodeID        // the leader that it followed last, unless it led since; "" for none
	Heir       NodeID        // whom that leader would have handed over to; "" for none or unknown
	LedLast    bool          // it led, and has followed nobody since
	Failed     uint8         // attempts to be elected that failed since there was a leader
}

// reset notes who leads, and whom that node names.
func (t *turns) reset(leader, heir NodeID, leads bool) {
	t.LastLeader, t.Heir, t.LedLast, t.Failed = leader, heir, leads, 0
}

// failed notes an attempt that failed.
func (t *turns) failed() { t.Failed = min(t.Failed+1, maxFailed) }

// LastLeader is the leader that this node followed last; "" for none, or if it has led since.
func (m *Machine) LastLeader() NodeID { return m.state.Turns.LastLeader }

// RoundTrip is that of the newest Measured; 0 if there was none.
func (m *Machine) RoundTrip() time.Duration { return m.state.Turns.RoundTrip }

// TripToMajority returns the value for Measured: the round trip to the farthest of the nearest
// voters that form a majority together with this one, or 0 if none is known. So one slow voter does
// not make all wait longer. trips are the round trips to the other voters, 0 for an unknown one; it
// changes them.
func TripToMajority(trips []time.Duration, voters int) time.Duration {
	known := slices.DeleteFunc(trips, func(d time.Duration) bool { return d <= 0 })
	slices.Sort(known)
	if len(known) == 0 {
		return 0
	}
	return known[min(max(Majority(voters)-1, 1), len(known))-1]
}

// step is the unit of the waits of a node that goes by turns: two round trips, within the bounds
// of the configuration. One and a half round trips after a node asks, the others have its
// proposal. The step is 0 if the node does not go by turns, or if nothing was measured yet.
func (m *Machine) step() time.Duration {
	t, trip := &m.cfg.Timing, m.state.Turns.RoundTrip
	if t.MinRandomWait == 0 || trip <= 0 {
		return 0
	}
	return min(max(2*min(trip, t.MaxRandomWait), t.MinRandomWait), t.MaxRandomWait)
}

// turn is how long this node lets those before it in line go first.
func (m *Machine) turn() time.Duration {
	return min(time.Duration(m.rank())*m.step(), m.cfg.Timing.MaxRandomWait)
}

// backOff arms the wait that precedes every attempt to stand: the node's turn if it goes by
// turns and this is the first attempt, a random time otherwise. §3.4
func (m *Machine) backOff() {
	if m.step() != 0 && m.state.Turns.Failed == 0 {
		m.standInTurn()
		return
	}
	m.standIn(m.randomWait())
}

// standInTurn lets the node stand one turn after it becomes free to stand.
func (m *Machine) standInTurn() {
	end := max(m.bound(), m.state.Now)
	m.standIn(end.Sub(m.state.Now) + m.turn())
	m.state.seek().Postponed = end > m.state.Now
}

// randomWait is uniform in [0, MaxRandomWait] or, if the node goes by turns, in a window that
// doubles with each failed attempt: §3.14. The successor that a leader named waits a
// hundredth of the longest: the others stay back for it, and refuse only until the cession
// has reached them as well. §9.7
func (m *Machine) randomWait() time.Duration {
	limit, t := m.cfg.Timing.MaxRandomWait, &m.state.Turns
	if window := m.step() << t.Failed; window != 0 {
		limit = min(window, limit)
	}
	// §9.14: where the leader named a successor ahead, that goes first after a crash, too.
	first := t.Heir == m.cfg.Self && t.Failed == 0 && m.step() == 0
	if first || m.state.Now < m.state.Seek.SuccessorUntil {
		limit = min(limit, m.cfg.Timing.MaxRandomWait/100)
	}
	hi, _ := bits.Mul64(m.draw(), uint64(limit)+1)
	return time.Duration(hi)
}

// rank is the number of connected voters that are before this node in line. Nodes that see
// different voters connected may be of one rank: they collide, once at most.
func (m *Machine) rank() int {
	t, rank := &m.state.Turns, 0
	for voter, id := range m.set.voters {
		first := t.LedLast || id == t.Heir ||
			t.Heir != m.cfg.Self && voter > m.set.self
		if first && voter != m.set.self && m.state.Linked.Has(voter) && id != t.LastLeader {
			rank++
		}
	}
	return rank
}

// heir is the successor that a leader names ahead: to nodes that go by turns, and where
// applications are prepared. The target of a handover prepares itself for that.
func (m *Machine) heir() NodeID {
	switch to := m.state.Leader.Handover.To; {
	case m.state.Prepares && to != "":
		return to
	case m.state.Prepares || m.cfg.Timing.MinRandomWait != 0:
		return m.BestSuccessor()
	}
	return ""
}

// LedLast reports whether this node led, and has followed nobody since.
func (m *Machine) LedLast() bool { return m.state.Turns.LedLast }

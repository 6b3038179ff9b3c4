package measure

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Election is the state of the measure of one election. One goroutine owns it.
type Election struct {
	Lease       time.Duration // of the configuration
	Leaderships uint64        // how often there came to be a leader
	Leaderless  elector.Time  // since when there has been none; 0 if there is one

	leaseEnd   elector.Time // as of the step before
	lost       elector.Time // when the last leader was lost; 0 if never, or if there is a leader
	phaseBegan elector.Time
	discovery  elector.Time // when the wait after the start ends
	phase      phase
}

// Stepped counts the input and the effects of a step, which left the lease with the given end. The
// leader is that before the step.
func (m *Measure) Stepped(s *Election, machine *elector.Machine, in elector.Input,
	e *elector.Effects, now, leaseEnd elector.Time, leader elector.NodeID,
) {
	if r, ok := in.(elector.Received); ok {
		answered(&r.Message, &m.ScoutingReceived, &m.VotesReceived)
	}
	for i := range e.Messages {
		answered(&e.Messages[i].Message, &m.ScoutingGiven, &m.VotesGiven)
	}
	for i := range e.Transitions {
		t := &e.Transitions[i]
		m.changed(s, t, leader, now)
		leader = t.Leader
	}
	// How near its end the lease came before it was renewed.
	if leaseEnd != s.leaseEnd {
		_, late := in.(elector.Backed) // it was renewed before, by beats
		if !late && leaseEnd != 0 && leaseEnd != elector.Never && s.leaseEnd != 0 &&
			s.leaseEnd != elector.Never {
			m.Renewals.Observe(float64(max(s.leaseEnd.Sub(now), 0)) / float64(s.Lease))
		}
		s.leaseEnd = leaseEnd
	}
	// The path of a heartbeat ends here: there is a leader, and no phase to end.
	if leader != "" && s.phase == phaseNone {
		return
	}
	if next := s.phaseOf(machine.Status()); next != s.phase {
		if s.phase != phaseNone {
			m.phases[s.phase].Observe(now.Sub(s.phaseBegan).Seconds())
		}
		s.phase, s.phaseBegan = next, now
	}
}

// changed counts a change of the leader that the node is or follows; it was the given one.
func (m *Measure) changed(
	s *Election, t *elector.Transition, leader elector.NodeID, now elector.Time,
) {
	switch {
	case t.Leader != "":
		s.Leaderless = 0
	case s.Leaderless == 0:
		s.Leaderless = max(now, 1)
	}
	if t.Leader == leader {
		return
	}
	m.changes[t.Reason].Add(1)
	if leader == "" && s.lost != 0 {
		m.Gaps.Observe(now.Sub(s.lost).Seconds())
	}
	s.lost = 0
	if t.Leader == "" {
		s.lost = now
	} else {
		s.Leaderships++
	}
}

// phase is a part of an election, while a node has no leader.
type phase uint8

// The phases, in the order of an election that succeeds.
const (
	phaseNone           phase = iota
	phaseDiscovery            // after the start: listens for a leader that there may be
	phaseBackOff              // waits before it may stand, for a promise to lapse too
	phaseScouting             // asks whether it would be elected
	phaseProposal             // stands for election, its own write to the disk included
	phaseFirstHeartbeat       // has voted for another, and waits for it to lead
	phaseEnd
)

var phaseNames = [phaseEnd]string{
	"none", "discovery", "back-off", "scouting", "proposal", "first-heartbeat",
}

func (s *Election) phaseOf(st elector.Status) phase {
	switch {
	case st.Role == elector.Dormant || st.Leader != "":
		return phaseNone
	case st.Role == elector.Candidate:
		return phaseProposal
	case st.AwaitedLeader != "":
		return phaseFirstHeartbeat
	case st.Scouting:
		return phaseScouting
	case st.StandAt == 0:
		return phaseNone // it does not stand
	}
	if s.discovery == 0 {
		s.discovery = st.StandAt
	}
	if st.StandAt == s.discovery {
		return phaseDiscovery
	}
	return phaseBackOff
}

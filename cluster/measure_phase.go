package cluster

import (
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
)

// Phase is a part of an election, as one node goes through it while it has no
// leader.
type Phase uint8

// The phases, in the order of an election that succeeds.
const (
	PhaseNone           Phase = iota
	PhaseDiscovery            // after the start: listens for a leader that there may be
	PhaseBackOff              // waits before it may stand, for a promise to lapse too
	PhaseScouting             // asks whether it would be elected
	PhaseProposal             // stands for election, its own write to the disk included
	PhaseFirstHeartbeat       // has voted for another, and waits for it to lead
	phaseEnd
)

var phaseNames = [phaseEnd]string{"none", "discovery", "back-off", "scouting", "proposal", "first-heartbeat"}

// String returns the phase's name, as used in metrics.
func (p Phase) String() string {
	if p < phaseEnd {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// inPhase measures how long each phase takes. Where there is a leader, and no
// phase to end, it looks no further: that is the path of a heartbeat.
func (m *measure) inPhase(g *group, now elector.Time) {
	s := &g.measure
	if s.leader != "" && s.phase == PhaseNone {
		return
	}
	next := s.phaseOf(g.machine.Status())
	if next == s.phase {
		return
	}
	if s.phase != PhaseNone {
		m.phases[s.phase].Observe(now.Sub(s.phaseBegan).Seconds())
	}
	s.phase, s.phaseBegan = next, now
}

func (g *groupMeasure) phaseOf(st elector.Status) Phase {
	switch {
	case st.Role == elector.Dormant || st.Leader != "":
		return PhaseNone
	case st.Role == elector.Candidate:
		return PhaseProposal
	case st.Tentative != "":
		return PhaseFirstHeartbeat
	case st.Scouting:
		return PhaseScouting
	case st.StandAt == 0:
		return PhaseNone // it does not stand
	}
	if g.discovery == 0 {
		g.discovery = st.StandAt
	}
	if st.StandAt == g.discovery {
		return PhaseDiscovery
	}
	return PhaseBackOff
}

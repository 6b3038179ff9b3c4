package elector

import (
	"github.com/bmqelect/bmqelect/lsn"
)

// admission says what is checked of a message before anything looks at it.
type admission struct {
	fromVoter  bool // only voters may send it
	meansTerm  bool // Term 0 makes no sense
	meansOther bool // ProposedTerm 0 makes no sense
}

var admissions = [kindEnd]admission{
	ElectionScouting:         {fromVoter: true, meansOther: true},
	ElectionScoutingResponse: {fromVoter: true, meansOther: true},
	ElectionProposal:         {fromVoter: true, meansTerm: true},
	ElectionProposalResponse: {fromVoter: true, meansOther: true},
	LeaderHeartbeat:          {fromVoter: true, meansTerm: true},
	HeartbeatAck:             {fromVoter: true, meansTerm: true},
	InvalidHeartbeat:         {fromVoter: true, meansTerm: true},
	LeadershipCession:        {fromVoter: true, meansTerm: true},
	NodeUnavailable:          {},
}

// admit is the one place where every message is checked before it is acted on:
// sender entitled, term not absurd.
func (m *Machine) admit(from NodeID, msg *Message) bool {
	if !msg.Kind.Valid() || !msg.Cause.Valid() || from == m.cfg.Self {
		return m.refuse(AnomalyMalformed, from, msg)
	}
	rule := admissions[msg.Kind]
	if highestTerm(msg) > lsn.MaxTerm || rule.meansTerm && msg.Term == 0 || rule.meansOther && msg.ProposedTerm == 0 {
		return m.refuse(AnomalyAbsurdTerm, from, msg)
	}
	if _, isVoter := m.voter(from); rule.fromVoter && !isVoter {
		return m.refuse(AnomalyNotEntitled, from, msg)
	}
	// The counter belongs to a leadership: nobody has seen an LSN of a later one
	// than he speaks for.
	if msg.LSN.Term > msg.Term && (msg.Kind == LeaderHeartbeat || msg.Kind == HeartbeatAck) {
		return m.refuse(AnomalyMalformed, from, msg)
	}
	return true
}

// highestTerm is the highest that a message speaks of.
func highestTerm(msg *Message) lsn.Term {
	return max(msg.Term, msg.ProposedTerm, msg.LeaderTerm, msg.LSN.Term)
}

// refuse reports an anomaly; the message is not acted on.
func (m *Machine) refuse(kind AnomalyKind, from NodeID, msg *Message) bool {
	m.eff.Anomaly = Anomaly{Kind: kind, Peer: from, Msg: msg.Kind, Term: highestTerm(msg)}
	return false
}

// receive acts on a message from a peer.
func (m *Machine) receive(from NodeID, msg *Message) {
	if m.state.Role == Dormant || !m.admit(from, msg) {
		return
	}
	switch msg.Kind {
	case ElectionScouting:
		m.onElectionScouting(from, msg)
	case ElectionScoutingResponse:
		m.onElectionScoutingResponse(from, msg)
	case ElectionProposal:
		m.onElectionProposal(from, msg)
	case ElectionProposalResponse:
		m.onElectionProposalResponse(from, msg)
	case LeaderHeartbeat:
		m.onLeaderHeartbeat(from, msg)
	case HeartbeatAck:
		m.onHeartbeatAck(from, msg)
	case InvalidHeartbeat:
		m.onInvalidHeartbeat(from, msg)
	case LeadershipCession:
		m.onLeadershipCession(from, msg)
	case NodeUnavailable:
		m.onNodeUnavailable(from, msg)
	}
}

package elector

import "github.com/bmqelect/bmqelect/lsn"

// receive acts on a message from a peer, after the checks that every message must pass.
func (m *Machine) receive(from NodeID, msg *Message) {
	if m.state.Role == Dormant {
		return
	}
	if anomaly := m.check(from, msg); anomaly != anomalyNone {
		m.report(anomaly, from, msg)
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

// check returns what is wrong with a message, whatever the state of this machine.
func (m *Machine) check(from NodeID, msg *Message) AnomalyKind {
	if !msg.Kind.Valid() || !msg.Cause.Valid() || from == m.cfg.Self {
		return AnomalyMalformed
	}
	term := msg.Term // the one that the message is about
	switch msg.Kind {
	case ElectionScouting, ElectionScoutingResponse, ElectionProposalResponse:
		term = msg.ProposedTerm
	}
	_, isVoter := m.voter(from)
	switch {
	case highestTerm(msg) > lsn.MaxTerm, term == 0 && msg.Kind != NodeUnavailable: // §2.2
		return AnomalyAbsurdTerm
	case !isVoter && msg.Kind != NodeUnavailable: // §2.1: observers say nothing else
		return AnomalyNotEntitled
	case msg.LSN.Term > msg.Term && (msg.Kind == LeaderHeartbeat || msg.Kind == HeartbeatAck):
		return AnomalyMalformed // §2.3: nobody has seen an LSN of a leadership to come
	}
	return anomalyNone
}

// highestTerm is the highest that a message speaks of.
func highestTerm(msg *Message) lsn.Term {
	return max(msg.Term, msg.ProposedTerm, msg.LeaderTerm, msg.LSN.Term)
}

// report tells the driver of an anomaly.
func (m *Machine) report(kind AnomalyKind, from NodeID, msg *Message) {
	m.eff.Anomaly = Anomaly{Kind: kind, Peer: from, Msg: msg.Kind, Term: highestTerm(msg)}
}

// maxLeap is by how much one message may raise this node's term. An emergency
// raises it by 10^9. Terms end at 2^63: at one leap in every heartbeat period of half a
// second they last for more than thirty years.
const maxLeap = 1 << 32

// leaps reports, also to the driver, that the term of a message is too far above this
// node's own to be believed at once: §8.1.
func (m *Machine) leaps(from NodeID, msg *Message) bool {
	if msg.Term <= m.state.Term+maxLeap {
		return false
	}
	m.report(AnomalyTermLeap, from, msg)
	return true
}

// climb goes one leap towards the term of a heartbeat or proposal that leaps. It neither
// follows nor votes yet: leaders and candidates repeat themselves. A node that leads,
// stands or follows need not climb. §8.2
func (m *Machine) climb() {
	if m.state.Role == Follower && m.state.Follower.Leader == "" {
		m.enterTerm(m.state.Term + maxLeap)
	}
}

// learn notes the term of a refusal as the floor of the next round, which rises by one
// leap a refusal at most: §8.3.
func (m *Machine) learn(from NodeID, msg *Message) {
	s := &m.state
	limit := max(s.Term, s.RefusedTerm) + maxLeap
	if msg.Term > limit {
		m.report(AnomalyTermLeap, from, msg)
	}
	s.RefusedTerm = max(s.RefusedTerm, min(msg.Term, limit, lsn.MaxTerm))
	m.reserve()
}

package elector

import "github.com/bmqelect/bmqelect/lsn"

// receive acts on a message from a peer, after the checks that every message must pass.
func (m *Machine) receive(from NodeID, identity Identity, msg *Message) {
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
		m.onElectionScoutingResponse(from, identity, msg)
	case ElectionProposal:
		m.onElectionProposal(from, msg)
	case ElectionProposalResponse:
		m.onElectionProposalResponse(from, identity, msg)
	case LeaderHeartbeat:
		m.onLeaderHeartbeat(from, msg)
	case HeartbeatAck:
		m.onHeartbeatAck(from, identity, msg)
	case InvalidHeartbeat:
		m.onInvalidHeartbeat(from, msg)
	case LeadershipCession:
		m.onLeadershipCession(from, msg)
	case NodeUnavailable:
		m.onNodeUnavailable(from, msg)
	case RecordOffer:
		m.onRecordOffer(from, msg)
	case RecordRequest:
		m.onRecordRequest(from, msg)
	case RecordAck:
		if m.state.Role == Leader && msg.Term == m.state.Leader.Term {
			voter, counts := m.genuine(from, identity)
			m.noteRecord(from, identity, voter, counts, msg)
		}
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
	// §15.4: with a record, members answer also who is no voter by their own, and nodes differ.
	entitled := isVoter || msg.Record != (lsn.LSN{}) || m.hasRecord() || len(m.set.voters) == 0
	switch {
	case absurd(msg), // §2.2
		term == 0 && msg.Kind != NodeUnavailable && msg.Kind != RecordRequest:
		return AnomalyAbsurdTerm
	case !entitled && msg.Kind != NodeUnavailable && msg.Kind != RecordRequest: // §2.1
		return AnomalyNotEntitled
	case msg.LSN.Term > msg.Term && (msg.Kind == LeaderHeartbeat || msg.Kind == HeartbeatAck):
		return AnomalyMalformed // §2.3: nobody has seen an LSN of a leadership to come
	case !plausible(msg):
		return AnomalyMalformed
	case min(msg.Period, msg.Late, msg.RetryAfter) < 0, max(msg.Late, msg.RetryAfter) > longest,
		msg.Period >= m.cfg.Timing.Lease && msg.Kind == LeaderHeartbeat:
		return AnomalyMalformed // §2.3: its lease would outlast the promises to it
	case m.foreign(msg):
		return AnomalyOtherLineage
	}
	return anomalyNone
}

// foreign reports whether a message is of another lineage than the record that this node has:
// §15.14. What is not founded yet is so only if it would take the place of the record. So would
// what a leader without a record writes.
func (m *Machine) foreign(msg *Message) bool {
	own := &m.state.Record.Accepted
	switch {
	case !own.Founded || msg.Lineage == own.Lineage:
		return false
	case msg.Kind == LeaderHeartbeat:
		return msg.Founded || own.LSN.Term < msg.Term
	}
	return msg.Founded || own.LSN.Less(msg.Record)
}

// plausible reports whether a correct node can say this about its record: §2.3.
func plausible(msg *Message) bool {
	if msg.Kind == RecordOffer {
		offer := msg.Offer
		return offer != nil && offer.LSN == msg.Record && offer.LSN.Term <= msg.Term &&
			offer.Lineage == msg.Lineage && offer.Founded == msg.Founded && offer.Check() == nil
	}
	return msg.Record.Term <= max(msg.Term, msg.ProposedTerm, msg.Entered) &&
		!msg.Record.Less(msg.Committed)
}

// longest is what no node with a valid configuration announces more than: a promise of 24h
// with the greatest drift.
const longest = maxTimer + maxTimer/2

// absurd reports whether a message speaks of a term above the last one, 2^63-1.
func absurd(msg *Message) bool {
	return (msg.Term | msg.ProposedTerm | msg.LeaderTerm | msg.LSN.Term | msg.Record.Term |
		msg.Committed.Term | msg.Entered) > lsn.MaxTerm
}

// highestTerm is the highest that a message speaks of.
func highestTerm(msg *Message) lsn.Term {
	return max(msg.Term, msg.ProposedTerm, msg.LeaderTerm, msg.LSN.Term, msg.Record.Term,
		msg.Entered)
}

// report tells the driver of an anomaly.
func (m *Machine) report(kind AnomalyKind, from NodeID, msg *Message) {
	m.eff.Anomaly = Anomaly{Kind: kind, Peer: from, Msg: msg.Kind, Term: highestTerm(msg),
		Lineage: msg.Lineage}
}

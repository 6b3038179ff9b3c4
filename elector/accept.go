package elector

import "github.com/bmqelect/bmqelect/lsn"

// recordState is what a node knows of its election's record: §15. It is zero in an election that
// has none.
type recordState struct {
	Accepted Record  // the newest, on disk or on its way there: it counts in questions
	Stored   lsn.LSN // of the newest on disk: it counts for commit
	Shown    Record  // the newest that it knows to be committed; zero for none since the start
	Newer    newer
}

// newer is the newest record that a refusal named and this node lacks: §15.5.
type newer struct {
	LSN  lsn.LSN
	From NodeID
}

// startRecord takes up the record that the disk has.
func (m *Machine) startRecord(r Record) {
	s := &m.state
	if now := (recordState{Accepted: r, Stored: r.LSN}); now != *s.Record {
		*s.record() = now
	}
	s.Term, s.Durable = max(s.Term, r.LSN.Term), max(s.Durable, r.LSN.Term)
	s.Asked = s.Durable
	m.adopt()
}

// accept makes a record this node's own: §15.2. It goes to disk together with the term, which is
// never below the record's.
func (m *Machine) accept(r Record) {
	s := &m.state
	m.enterTerm(r.LSN.Term)
	s.record().Accepted = r
	m.adopt()
	m.eff.Accept = r
	m.eff.Persist = Terms{Entered: s.Term, Reserved: s.Asked}
	if s.Role == Follower {
		m.ableAgain() // it may have become a voter
	}
}

// onRecordOffer accepts a record that is newer than the node's own. It does not matter who sends
// it: only an acknowledgement in the record's own term counts for commit. A round or ballot and the
// voters that it is counted under belong together, so nothing is accepted meanwhile.
func (m *Machine) onRecordOffer(from NodeID, msg *Message) {
	s := &m.state
	switch c := msg.Record.Compare(s.Record.Accepted.LSN); {
	case c == 0 && msg.Record == s.Record.Stored: // otherwise it tells when that is on disk
		m.tellStored(from)
	case c <= 0 || s.Role != Follower || s.Seek.Round.IsOpen():
	case m.rise(s.Term, msg.Record.Term) < msg.Record.Term:
		m.report(AnomalyTermLeap, from, msg)
	default:
		m.accept(*msg.Offer)
	}
}

// stored goes on with a record that is on disk.
func (m *Machine) stored(n lsn.LSN) {
	s := &m.state
	if n.Compare(s.Record.Stored) <= 0 || n.Compare(s.Record.Accepted.LSN) > 0 {
		return
	}
	s.record().Stored = n
	switch {
	case s.Role == Leader:
		m.commit()
		m.advance()
	case s.Follower.Leader != "":
		m.tellStored(s.Follower.Leader)
	case s.Role == Follower && s.Record.Newer.From != "" && !n.Less(s.Record.Newer.LSN):
		m.setNewer(newer{})
		m.stand() // §15.5: it asks again at once
	}
}

// tellStored acknowledges the record on disk to the leader that this node follows.
func (m *Machine) tellStored(to NodeID) {
	s := &m.state
	if s.Role == Follower && s.Follower.Leader == to {
		ack := Message{Kind: RecordAck, Term: s.Follower.LeaderTerm}
		m.acknowledge(&ack)
		m.send(to, &ack)
	}
}

// acknowledge says in an acknowledgement to a leader which record is on disk here. If this node
// may have voted in a higher term, it may have elected another leader, which may lack the record:
// its word counts neither for that (§15.2) nor for a proof of leadership (§7.13).
func (m *Machine) acknowledge(ack *Message) {
	if m.hasRecord() {
		ack.Record = m.state.Record.Stored
	}
	if floor := m.floor(); floor > ack.Term {
		ack.Entered = floor
	}
}

// heardRecord acts on what the heartbeat of a leader that this node follows says of the record.
func (m *Machine) heardRecord(from NodeID, msg *Message) {
	if msg.Record == (lsn.LSN{}) {
		return
	}
	m.setNewer(newer{})
	r := m.state.Record
	if msg.Committed == r.Accepted.LSN && r.Shown != r.Accepted {
		r.Shown = r.Accepted // it has a record, or both would be zero
	}
	if r.Accepted.LSN.Less(msg.Record) {
		m.state.Follower.Lacks = true
		m.request(from)
	}
	voter, named := m.voter(m.cfg.Self)
	if named && !m.set.mayVote && m.set.ids[voter] == (Identity{}) {
		m.tellStored(from) // §15.13: until the leader has met this node
	}
}

// request asks a member for its record, if that is newer than this node's own.
func (m *Machine) request(from NodeID) {
	m.send(from, &Message{Kind: RecordRequest, Term: m.state.Term,
		Record: m.state.Record.Accepted.LSN})
}

// onRecordRequest sends the newest record that the asker may have: §15.10. One that may not be
// committed goes to its own voters only.
func (m *Machine) onRecordRequest(from NodeID, msg *Message) {
	r := m.state.Record.Accepted
	if _, ok := r.Voters.Find(from); !ok && r.LSN != m.state.Record.Shown.LSN {
		r = m.state.Record.Shown
	}
	if r.LSN.Compare(msg.Record) > 0 {
		m.offer(from, m.state.Term, &r)
	}
}

// offer sends a record to a member. It must not be changed afterwards.
func (m *Machine) offer(to NodeID, term lsn.Term, r *Record) {
	m.send(to, &Message{Kind: RecordOffer, Term: term, Record: r.LSN, Offer: r})
}

// noteNewer notes the record that a refusal names, in case this node's attempt fails: §15.5.
func (m *Machine) noteNewer(from NodeID, msg *Message) {
	r := m.state.Record
	if !msg.WillVote && msg.Record.Compare(r.Accepted.LSN) > 0 &&
		msg.Record.Compare(r.Newer.LSN) >= 0 {
		m.setNewer(newer{LSN: msg.Record, From: from})
	}
}

// setNewer notes which record is newer than that of this node, or that none is.
func (m *Machine) setNewer(n newer) {
	if n != m.state.Record.Newer {
		m.state.record().Newer = n
	}
}

// fetch requests the newest record that a refusal named, after an attempt that failed.
func (m *Machine) fetch() {
	if from := m.state.Record.Newer.From; from != "" {
		m.request(from)
	}
}

// RecordStatus is what a node knows of its election's record.
type RecordStatus struct {
	Accepted  Record  // the newest, perhaps not committed; its value may still be on its way to disk
	Stored    lsn.LSN // of the newest on disk
	Committed Record  // the newest that it knows to be committed; zero for none since the start
	// InSync is whether a leader may write, and a read of Committed under its lease is the newest.
	InSync bool
	Behind []NodeID     // leader: the voters that have not acknowledged Accepted, sorted
	Change ChangeVoters // leader: the change of voters that it is asked for and has not written
}

// Record returns what this node knows of the record, as of the last step.
func (m *Machine) Record() RecordStatus {
	r, w := m.state.Record, m.state.Writing
	st := RecordStatus{Accepted: r.Accepted, Stored: r.Stored, Committed: r.Shown,
		InSync: m.inSync(), Change: w.Change}
	if m.state.Role == Leader && m.hasRecord() {
		st.Behind = m.names(func(voter int) bool { return !m.hasStored(voter) })
	}
	return st
}

// Versions returns the LSNs of Accepted and Committed of Record.
func (m *Machine) Versions() (accepted, committed lsn.LSN) {
	return m.state.Record.Accepted.LSN, m.state.Record.Shown.LSN
}

// MayVote reports whether this node is one of the voters that count for it.
func (m *Machine) MayVote() bool { return m.set.mayVote }

// Electorate returns the voters that count for this node, sorted, as of the last step. The caller
// must not change them.
func (m *Machine) Electorate() []NodeID { return m.set.voters }

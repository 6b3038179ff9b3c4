package elector

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// writing is what a leader knows of the record that it has written last, and is asked to write.
type writing struct {
	Counter   uint64          // of that record; 0 if it has written none in its term
	Stored    scouting.Voters // the other voters that have it on disk
	Before    scouting.Voters // those that had the one before
	Committed bool
	InSync    bool // a record of its term was committed
	Begin     bool // a first record is wanted, with the configured voters
	Bind      bool // it has met a voter whose identity the record lacks
	Kept      Time // the lease that it had when it wrote the last change; 0 if the lease has followed
	Change    ChangeVoters
	Asked     lsn.LSN // the newest committed record when the change was asked for
	Ready     bool    // the voter that is to be added has that
}

// Errors of Publishable and Changeable. The first two pass by themselves.
var (
	ErrNotInSync = errors.New("the leader has not committed the record in its term yet")
	ErrWriting   = errors.New("the record written before is not committed yet")

	errUnmet     = fmt.Errorf("%w: too few voters have shown their data directories", ErrNotInSync)
	errHandsOver = fmt.Errorf("%w: it hands over, and the successor needs the newest", ErrWriting)

	errNoChange   = errors.New("a change adds one node that is no voter, or removes one voter")
	errNoIdentity = errors.New("it needs a node with a data directory")
	errUnsafe     = errors.New("it needs a safe election: UnsafeQuorum or UnsafeNoScouting is set")
)

// inSync reports whether this leader knows the newest committed record: §15.6.
func (m *Machine) inSync() bool {
	return m.state.Role == Leader && (m.state.Writing.InSync || !m.hasRecord())
}

// Publishable returns nil if Publish would write now: this node leads, knows the newest record,
// and the record before is committed. Otherwise it says why not; ErrNotInSync and ErrWriting pass.
func (m *Machine) Publishable() error {
	l := m.state.Leader
	switch {
	case m.state.Role != Leader:
		return ErrNotLeader
	case m.keepsVotes() != nil:
		return m.keepsVotes()
	case !m.inSync() || l.Reaffirm.Term != 0:
		return ErrNotInSync
	case !m.hasRecord() && m.met() < m.set.quorum: // §15.13: it could never be committed
		return errUnmet
	case m.hasRecord() && !m.state.Writing.Committed:
		return ErrWriting
	case l.Handover.Asked != 0 && !l.Handover.Stopping: // §15.11
		return errHandsOver
	}
	return nil
}

// keepsVotes returns nil if this node's disk keeps its votes, and any two quorums have a voter in
// common: a record and a proof of leadership rest on both.
func (m *Machine) keepsVotes() error {
	switch {
	case m.cfg.Identity == (Identity{}):
		return errNoIdentity
	case m.cfg.UnsafeQuorum || m.cfg.UnsafeNoScouting:
		return errUnsafe
	}
	return nil
}

// met is the number of voters whose directories the leader knows.
func (m *Machine) met() int {
	n := 1
	for i := range m.state.By {
		if m.state.By[i].Met != (Identity{}) {
			n++
		}
	}
	return n
}

// publish writes a value: §15.3. The first record has none: §15.14.
func (m *Machine) publish(v Value) {
	switch {
	case m.Publishable() != nil:
	case m.hasRecord():
		v.LSN = m.nextLSN()
		m.write(v, m.roster(false))
	default:
		m.write(Value{}, m.roster(true))
	}
}

// nextLSN is that of the next record that this leader writes.
func (m *Machine) nextLSN() lsn.LSN {
	return lsn.LSN{Term: m.state.Leader.Term, Counter: m.state.Writing.Counter + 1}
}

// roster is that of the accepted record, without those that are lost for ever, or of the
// configuration; with the identities that the leader has met, if they are to be bound.
func (m *Machine) roster(bind bool) Roster {
	voters := make([]Voter, len(m.set.voters))
	for i, id := range m.set.voters {
		voters[i] = Voter{Node: id, Identity: m.set.ids[i]}
		switch {
		case i == m.set.self:
			voters[i].Identity = m.cfg.Identity
		case bind && voters[i].Identity == (Identity{}): // §15.13
			voters[i].Identity = m.state.By[i].Met
		}
	}
	return NewRoster(voters...)
}

// write accepts a record of this leader's own, and sends it to its voters.
func (m *Machine) write(v Value, voters Roster) {
	l := m.state.Leader
	w, old := m.state.writing(), &m.state.Record.Accepted
	r := Record{LSN: m.nextLSN(), Value: v, Voters: voters,
		Lineage: old.Lineage, Founded: old.Founded || w.Committed} // §15.14
	if r.Lineage == (Identity{}) {
		r.Lineage = m.cfg.Identity
	}
	w.InSync = m.inSync() // it is, if it writes the very first
	w.Counter, w.Committed, w.Begin = r.LSN.Counter, false, false
	w.Stored, w.Before = 0, w.Stored
	m.accept(r)
	for i, id := range m.set.voters {
		if i != m.set.self {
			m.offer(id, l.Term, &r)
		}
	}
}

// writeAnew lets a new leader write the record that it accepted anew, as its first step: §15.6.
func (m *Machine) writeAnew() {
	if m.hasRecord() {
		m.write(m.state.Record.Accepted.Value, m.roster(false))
	}
}

// noteRecord notes what an acknowledgement says of the record, and of who sent it: a voter, unless
// that is negative, whose word counts or not.
func (m *Machine) noteRecord(
	from NodeID, identity Identity, voter int, counts bool, msg *Message,
) {
	w, newest := m.state.Writing, m.state.Record.Accepted.LSN
	if voter >= 0 && m.set.ids[voter] == (Identity{}) && identity != (Identity{}) &&
		m.state.By[voter].Met != identity {
		m.state.By[voter].Met = identity
		if m.hasRecord() { // then it has written one
			w.Bind = true
		}
	}
	if add := &w.Change.Add; from == add.Node && identity == add.Identity &&
		msg.Record.Term == msg.Term && !msg.Record.Less(w.Asked) {
		w.Ready = true
	}
	switch {
	case msg.Record != newest:
		if newest == (lsn.LSN{}) { // somebody has a record: §15.6
			m.state.writing().Begin = true
		}
	case newest == (lsn.LSN{}):
	case msg.Entered > msg.Term: // §15.2: its word counts in a higher term
		refusal := Message{Kind: msg.Kind, Term: msg.Entered}
		m.reaffirmAbove(from, &refusal)
	default:
		if counts && !w.Stored.Has(voter) {
			w.Stored = w.Stored.With(voter)
			m.tellReturned(from, voter)
		}
		m.commit()
	}
	m.advance()
}

// tellReturned tells a voter at once that the record which it has now is committed, if it has come
// back (§9.6). It was behind the others, for whom the next broadcast is early enough: §16.7.
func (m *Machine) tellReturned(id NodeID, voter int) {
	l := m.state.Leader
	if m.state.Writing.Committed && !l.Settled.Has(voter) {
		m.heartbeat(id, 0)
		l.Told.Stored = l.Told.Stored.With(voter)
	}
}

// hasStored reports whether a voter has this leader's newest record on disk.
func (m *Machine) hasStored(voter int) bool {
	if voter == m.set.self {
		return m.state.Record.Stored == m.state.Record.Accepted.LSN
	}
	return m.state.Writing.Stored.Has(voter)
}

// commit commits the leader's newest record once a quorum of its voters, which the leader is one
// of, has it on disk: §15.3. It says so at once.
func (m *Machine) commit() {
	w := m.state.Writing
	stored := w.Stored.Count()
	if m.hasStored(m.set.self) {
		stored++
	}
	if w.Committed || w.Counter == 0 || stored < m.set.quorum {
		return
	}
	r := m.state.record()
	w.Committed, w.InSync, r.Shown = true, true, r.Accepted
	m.heartbeatAll()
}

// advance writes what the leader is to write besides values, as soon as it may: the first record,
// identities that it has met, a change of voters.
func (m *Machine) advance() {
	w := m.state.Writing
	switch wanted := w.Begin || w.Bind || w.Change != (ChangeVoters{}); {
	case !wanted || m.Publishable() != nil:
	case !m.hasRecord():
		m.write(Value{}, m.roster(true))
	case w.Bind:
		m.changeTo(m.roster(true)) // §15.13
	default:
		m.change()
	}
}

// Changeable returns nil if ChangeVoters could be carried out by this leader. Otherwise it says why
// not: ErrNotLeader, or what is wrong with the change.
func (m *Machine) Changeable(c ChangeVoters) error {
	adds, err := c.Add.Node != "", m.Publishable()
	at, there := m.voter(cmp.Or(c.Add.Node, c.Remove))
	switch {
	case err != nil && !errors.Is(err, ErrWriting) && !errors.Is(err, ErrNotInSync):
		return err
	case m.set.quorum != Majority(len(m.set.voters)):
		return fmt.Errorf("voters cannot change: Quorum is set to %d, and only a majority, %d of %d, "+
			"follows a change", m.cfg.Quorum, Majority(len(m.set.voters)), len(m.set.voters))
	case c == (ChangeVoters{}):
		return nil
	case m.state.Writing.Change != (ChangeVoters{}) && m.state.Writing.Change != c:
		return errors.New("another change of voters is under way")
	case adds == (c.Remove != "") || adds == there || adds && NameProblem(c.Add.Node) != "":
		return errNoChange
	case adds && c.Add.Identity == (Identity{}):
		return fmt.Errorf("%q has no data directory, or is not connected", c.Add.Node)
	case adds && len(m.set.voters) == scouting.MaxVoters:
		return fmt.Errorf("there are %d voters already, the limit", scouting.MaxVoters)
	case c.Remove == m.cfg.Self:
		return errors.New("it leads: it must hand over first, and its successor removes it")
	case !adds && m.state.Linked.With(m.set.self).Without(at).Count() < Majority(len(m.set.voters)-1):
		return fmt.Errorf("without %q too few of the voters are connected", c.Remove)
	}
	return nil
}

// changeVoters notes the change that is wanted.
func (m *Machine) changeVoters(c ChangeVoters) {
	if m.Changeable(c) != nil {
		return
	}
	w := m.state.writing()
	w.Change, w.Asked, w.Ready = c, m.state.Record.Shown.LSN, false
	m.offerNewcomer()
	m.advance()
}

// offerNewcomer sends the newest committed record to the node that is to become a voter, now and
// again with each heartbeat. The acknowledgement shows that the node is there.
func (m *Machine) offerNewcomer() {
	w, shown := m.state.Writing, m.state.Record.Shown
	if w.Change.Add.Node != "" && !w.Ready && m.inSync() && shown.LSN != (lsn.LSN{}) {
		m.offer(w.Change.Add.Node, m.state.Leader.Term, &shown)
	}
}

// change writes the change of voters that is wanted, once the lease has followed the one before
// (§15.8) and, for a voter that is added, once that has the newest record: §15.10.
func (m *Machine) change() {
	w := m.state.writing()
	if !m.leaseFollows() {
		return
	}
	c, voters := w.Change, m.state.Record.Accepted.Voters
	switch {
	case c.Remove != "" && !m.enoughWithout(c.Remove):
		return
	case c.Remove != "":
		voters = voters.Without(c.Remove)
	case w.Ready:
		voters = voters.With(c.Add)
	default:
		return
	}
	w.Change, w.Ready = ChangeVoters{}, false
	m.changeTo(voters)
}

// enoughWithout reports whether those connected voters that the record names by their directories
// are a quorum without one of the voters. If others were needed, nobody could commit the change,
// bind them, or lead again: §15.8.
func (m *Machine) enoughWithout(id NodeID) bool {
	rest := m.state.Linked.With(m.set.self)
	for i, voter := range m.set.voters {
		if voter == id || m.set.ids[i] == (Identity{}) {
			rest = rest.Without(i)
		}
	}
	return rest.Count() >= Majority(len(m.set.voters)-1)
}

// changeTo writes other voters, if the lease has followed the change before. It keeps the lease
// that the leader has: §15.9.
func (m *Machine) changeTo(voters Roster) {
	l := m.state.Leader
	if !m.leaseFollows() {
		return
	}
	if l.LeaseEnd == Never { // that of a sole voter has no end
		l.LeaseEnd = m.state.Now.Add(m.cfg.Timing.Lease)
	}
	w := m.state.writing()
	w.Kept, w.Bind = l.LeaseEnd, false
	m.write(m.state.Record.Accepted.Value, voters)
	m.renewLease()
}

// leaseFollows reports whether the lease that the acknowledgements give under the present voters
// ends no earlier than the one that was kept at the last change: §15.9.
func (m *Machine) leaseFollows() bool {
	kept := m.state.Writing.Kept
	return kept == 0 || m.lease() >= kept
}

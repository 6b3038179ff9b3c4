package elector

import (
	"slices"

	"github.com/bmqelect/bmqelect/scouting"
)

// electorate is the set of voters that counts for a node: §15.7. In an election without a record
// it is that of the configuration.
type electorate struct {
	voters  []NodeID   // sorted; a voter's index here is its number in sets of voters
	ids     []Identity // by voter; zero for one that counts by its name, or not at all
	self    int        // this node's index; -1 for an observer
	quorum  int
	mayVote bool // is a voter
}

// electorate returns that of these voters, which are sorted.
func (c *resolved) electorate(voters []NodeID, ids []Identity) electorate {
	e := electorate{voters: voters, ids: ids, quorum: Majority(len(voters))}
	if c.Quorum != 0 && c.Quorum != Majority(len(c.Voters)) {
		e.quorum = min(c.Quorum, len(voters)) // an emergency may have left fewer
	}
	if e.self, e.mayVote = slices.BinarySearch(voters, c.Self); !e.mayVote {
		e.self = -1
	}
	return e
}

// recorded is the electorate of a record, without what an emergency declared lost: §15.12.
func (c *resolved) recorded(r Record) electorate {
	var voters []NodeID
	var ids []Identity
	for _, v := range r.Voters.Voters() {
		if !slices.Contains(c.Lost, v) {
			voters, ids = append(voters, v.Node), append(ids, v.Identity)
		}
	}
	e := c.electorate(voters, ids)
	e.quorum = max(e.quorum, Majority(len(voters))) // Quorum is that of the configured voters
	if e.mayVote && (ids[e.self] != c.Identity || c.Identity == (Identity{})) {
		e.self, e.mayVote = -1, false // another directory has this name: §15.13
	}
	return e
}

// hasRecord reports whether this node knows that the election has a record.
func (m *Machine) hasRecord() bool { return m.state.Record.Accepted.LSN.Term != 0 }

// resolve makes the electorate that of the accepted record.
func (m *Machine) resolve() {
	m.set = &m.cfg.configured
	if m.hasRecord() {
		set := m.cfg.recorded(m.state.Record.Accepted)
		m.set = &set
	}
}

// genuine returns the index of a voter whose word counts: in an election with a record, the one of
// that name whose data directory the record names. §15.13
func (m *Machine) genuine(id NodeID, identity Identity) (voter int, ok bool) {
	voter, ok = m.voter(id)
	if ok && m.hasRecord() {
		ok = identity != (Identity{}) && m.set.ids[voter] == identity
	}
	return voter, ok
}

// alone reports whether this node is the only voter: §3.3.
func (m *Machine) alone() bool { return m.set.mayVote && len(m.set.voters) == 1 }

// adopt makes the electorate that of the accepted record. The support of a voter whose directory
// the record does not name was given by name, and counts for the lease no more: §15.13.
func (m *Machine) adopt() {
	old := m.set.voters
	if m.resolve(); !slices.Equal(old, m.set.voters) {
		m.renumber(old)
	}
	for i, id := range m.set.ids {
		if id == (Identity{}) && m.hasRecord() && m.state.Role == Leader {
			m.state.By[i].Support = 0
		}
	}
}

// renumber moves what is known by voter to the indexes of other voters.
func (m *Machine) renumber(old []NodeID) {
	s, l := &m.state, m.state.Leader
	sets := []*scouting.Voters{&s.Ceded, &s.Linked}
	was := s.By
	if s.Role == Leader {
		s.By = make([]voterState, len(m.set.voters))
		w := s.writing()
		sets = append(sets, &l.MayStand, &l.Cold, &l.LacksQuorum, &l.Settled, &w.Stored, &w.Before,
			&l.Confirm.Unsure)
	}
	before := make([]scouting.Voters, len(sets))
	for k, set := range sets {
		before[k], *set = *set, 0
	}
	for i, id := range m.set.voters {
		j := slices.Index(old, id)
		if j < 0 {
			if i != m.set.self {
				m.eff.Joined = append(m.eff.Joined, id)
			}
			continue
		}
		if s.Role == Leader {
			s.By[i] = was[j]
		}
		for k, set := range sets {
			if before[k].Has(j) {
				*set = set.With(i)
			}
		}
	}
}

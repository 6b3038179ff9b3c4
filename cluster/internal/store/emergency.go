package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Emergency records that voters were declared lost for ever, so that the others could go
// on without them. A record stays as long as the directory.
type Emergency struct {
	Time   time.Time        `json:"time"`
	Voters []elector.NodeID `json:"voters"` // who could vote until then
	Lost   []elector.NodeID `json:"lost"`   // those of them that were declared lost
	Reason string           `json:"reason,omitempty"`
	// Floor is below every term after the emergency, in all groups.
	Floor      uint64        `json:"floor"`
	Readmitted []Readmission `json:"readmitted,omitempty"`
	// Directories are those that the lost voters had, as far as this node knew.
	Directories []elector.Voter `json:"directories,omitempty"`
}

// Readmission records that a lost voter was replaced and may vote again.
type Readmission struct {
	Node elector.NodeID `json:"node"`
	Time time.Time      `json:"time"`
	Boot uint64         `json:"boot"` // the boot counter at that time
}

// FloorStep is by how much an emergency raises the terms. The lost voters may have held
// elections of which this node never heard; a term of those must not be used again, or
// fencing tokens would go backwards.
const FloorStep = 1_000_000_000

// MissesNode reports whether the emergency still keeps node from voting.
func (e Emergency) MissesNode(node elector.NodeID) bool {
	back := func(r Readmission) bool { return r.Node == node }
	return slices.Contains(e.Lost, node) && !slices.ContainsFunc(e.Readmitted, back)
}

// check returns what is wrong with a record.
func (e Emergency) check() error {
	for _, name := range slices.Concat(e.Voters, e.Lost) {
		if err := checkName("voter", string(name)); err != nil {
			return err
		}
	}
	switch {
	case e.Time.IsZero():
		return errors.New("an emergency must have a time")
	case len(e.Lost) == 0:
		return errors.New("an emergency must name the voters that are lost")
	case !lsn.Term(e.Floor).Valid():
		return fmt.Errorf("an emergency lifts the terms to %d, above the highest valid term %d",
			e.Floor, lsn.MaxTerm)
	}
	return nil
}

// Declare adds e to the emergencies, durably, and raises the terms of all groups by FloorStep; it
// ignores e.Floor, e.Readmitted and e.Directories. The caller decides whether that is safe, and
// must not change the slices of e afterwards.
func (s *Store) Declare(e Emergency) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state.Load().clone()
	e.Time, e.Readmitted = e.Time.UTC(), nil
	e.Floor = max(next.floor(), next.Forgotten)
	for _, term := range next.Groups {
		e.Floor = max(e.Floor, term)
	}
	e.Floor += FloorStep
	e.Directories = next.directories(e.Lost)
	if err := e.check(); err != nil {
		return fmt.Errorf("declare an emergency in %s: %w", s.dir, err)
	}
	next.Emergencies = append(next.Emergencies, e)
	return s.commit("record an emergency", next, nil)
}

// Readmit records, in every emergency in which node was lost, that it may vote again.
func (s *Store) Readmit(node elector.NodeID, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, found := s.state.Load().clone(), false
	for i := range next.Emergencies {
		if e := &next.Emergencies[i]; e.MissesNode(node) {
			e.Readmitted = append(slices.Clip(e.Readmitted), Readmission{node, at.UTC(), next.Boot})
			found = true
		}
	}
	if !found {
		return fmt.Errorf("readmit %q in %s: it is not recorded as lost", node, s.dir)
	}
	return s.commit(fmt.Sprintf("readmit %q", node), next, nil)
}

// Emergencies returns the emergencies, oldest first. They must not be changed.
func (s *Store) Emergencies() []Emergency { return s.state.Load().Emergencies }

// directories are those that nodes had under these names, in records or as they were met.
func (s state) directories(names []elector.NodeID) (all []elector.Voter) {
	for _, id := range names {
		for _, known := range s.Identities[id] {
			all = append(all, elector.Voter{Node: id, Identity: elector.Identity(known)})
		}
		for _, r := range s.Records {
			v, _ := r.Voters.Find(id)
			if v.Identity != (elector.Identity{}) && !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// Lost returns the directories that emergencies declared lost, and the names of those voters that
// were not readmitted: a record names them without a directory if no leader has met them.
func (s *Store) Lost() (lost []elector.Voter) {
	for _, e := range s.Emergencies() {
		lost = append(lost, e.Directories...)
		for _, id := range e.Lost {
			if e.MissesNode(id) {
				lost = append(lost, elector.Voter{Node: id})
			}
		}
	}
	return lost
}

// Records returns the newest record of each group that has one.
func (s *Store) Records() map[string]elector.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.state.Load().Records)
}

// floor is the lowest term at which a group may start.
func (s state) floor() (term uint64) {
	for _, e := range s.Emergencies {
		term = max(term, e.Floor)
	}
	return term
}

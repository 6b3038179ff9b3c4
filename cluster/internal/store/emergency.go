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

// Declare adds e to the emergencies, durably, and raises the terms of all groups
// by FloorStep; it ignores e.Floor and e.Readmitted. The caller decides whether that is
// safe, and must not change the slices of e afterwards.
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

// Lost returns the voters that are none of a record whose term is at most until: those that the
// newest emergency declared lost, even if they were readmitted since, and those lost before that
// could not vote by then.
func (s *Store) Lost() (lost []elector.NodeID, until lsn.Term) {
	all := s.Emergencies()
	for i, e := range all {
		newest := all[len(all)-1]
		for _, id := range e.Lost {
			if i == len(all)-1 || !slices.Contains(newest.Voters, id) {
				lost = append(lost, id)
			}
		}
	}
	return lost, lsn.Term(s.state.Load().floor())
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

package store

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Group returns the terms at which the named group starts, and notes that it was opened in
// this run. They are the group's durable terms or, if that is higher, the floor of an
// emergency. A group without durable terms may have been forgotten: it starts at the highest
// reserved term of any forgotten group. So this node has never voted in the group above
// Reserved, and it may vote only there.
//
// The name must be UTF-8 and not empty. Group waits for the disk only if a write is under
// way.
func (s *Store) Group(name string) (elector.Terms, error) {
	if err := checkName("group", name); err != nil {
		return elector.Terms{}, fmt.Errorf("start a group: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, idle := s.state.Load().Idle[name]; idle {
		next := s.state.Load().clone()
		delete(next.Idle, name)
		s.state.Store(&next)
		s.ahead = true
	}
	return s.state.Load().terms(name), nil
}

// Forget removes groups that are no longer open on this node; for one that is opened again
// see Group. It does not wait for the disk: the next write, or Close, saves the change. A
// crash before that forgets nothing.
func (s *Store) Forget(groups ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state.Load().clone()
	for _, group := range groups {
		_, recorded := next.Groups[group]
		s.ahead = s.ahead || recorded
		next.forget(group)
	}
	s.state.Store(&next)
}

// forget removes a group from a state that is not current yet.
func (s *state) forget(group string) {
	s.Forgotten = max(s.Forgotten, s.Groups[group])
	delete(s.Groups, group)
	delete(s.Entered, group)
	delete(s.Idle, group)
}

// idleStarts is how many starts in a row may pass without opening a group before the group
// is forgotten: its election ended in a crash, or is not configured any more.
const idleStarts = 16

// age counts a start of the node in a state that is not current yet.
func (s *state) age() {
	if s.Idle == nil {
		s.Idle = map[string]uint64{}
	}
	for group, term := range s.Groups {
		s.Idle[group]++
		if s.Idle[group] > idleStarts || term == 0 {
			s.forget(group)
		}
	}
}

// Persist makes the terms of the groups in terms durable, all or none, in one
// transaction. When it returns nil they are on disk; terms that already were
// cost no write. Reserved may go down: a node that stops gives back what it did not use.
//
// It is an error, and nothing is written, if a reserved term is above lsn.MaxTerm or below
// the entered one, or if an entered term is below the group's durable one. An error that
// wraps ErrNotDurable is final: the terms may or may not be on disk, every later write fails
// likewise, and the node must stop taking part.
func (s *Store) Persist(terms map[string]elector.Terms) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.state.Load()
	next := now.clone()
	for _, group := range slices.Sorted(maps.Keys(terms)) {
		if err := next.set(group, terms[group]); err != nil {
			return fmt.Errorf("persist terms in %s: %w", s.dir, err)
		}
	}
	same := maps.Equal(next.Groups, now.Groups) && maps.Equal(next.Entered, now.Entered)
	if s.failed == nil && same {
		return nil
	}
	return s.commit(fmt.Sprintf("persist the terms of %d groups", len(terms)), next)
}

// set sets the terms of group in a state that is not current yet.
func (s *state) set(group string, t elector.Terms) error {
	if err := checkName("group", group); err != nil {
		return err
	}
	switch durable := s.terms(group); {
	case !t.Reserved.Valid():
		return fmt.Errorf("group %q: term %d is above the highest valid term %d",
			group, t.Reserved, lsn.MaxTerm)
	case t.Entered > t.Reserved:
		return fmt.Errorf("group %q: term %d is above the highest reserved term %d",
			group, t.Entered, t.Reserved)
	case t.Entered < durable.Entered:
		return fmt.Errorf("group %q: term %d is below the durable term %d: a term never goes down",
			group, t.Entered, durable.Entered)
	}
	if t.Reserved == 0 {
		return nil // a new group begins at term 0 anyway
	}
	delete(s.Entered, group)
	s.Groups[group] = uint64(t.Reserved)
	if t.Entered < t.Reserved {
		if s.Entered == nil {
			s.Entered = numbers{}
		}
		s.Entered[group] = uint64(t.Entered)
	}
	return nil
}

// terms are those at which group starts.
func (s state) terms(group string) elector.Terms {
	reserved, ok := s.Groups[group]
	if !ok {
		reserved = s.Forgotten
	}
	entered, ok := s.Entered[group]
	if !ok {
		entered = reserved
	}
	floor := s.floor()
	return elector.Terms{
		Entered: lsn.Term(max(entered, floor)), Reserved: lsn.Term(max(reserved, floor)),
	}
}

// checkName demands what JSON stores unchanged: it would make one name of two that differ
// only in bytes that are not UTF-8.
func checkName(what, name string) error {
	if name == "" || !utf8.ValidString(name) {
		return fmt.Errorf("the name of a %s must be UTF-8 and not empty, not %q", what, name)
	}
	return nil
}

package store

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/lsn"
)

// Group returns the term at which the group called name starts, and remembers that
// it was opened in this run. It is the highest term that was persisted for the
// group or, if that is higher, an emergency's floor. A group that has none may be
// one that was forgotten: it starts at the highest term of any that was. So no
// group ever starts below a term in which this node has voted. A node must treat
// the term that it starts at as one in which it has voted.
//
// The name must be UTF-8 and not empty. It never waits for the disk but for a write
// that is under way.
func (s *Store) Group(name string) (lsn.Term, error) {
	if err := checkName("group", name); err != nil {
		return 0, fmt.Errorf("start a group: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, idle := s.state.Load().Idle[name]; idle {
		next := s.state.Load().clone()
		delete(next.Idle, name)
		s.state.Store(&next)
		s.ahead = true
	}
	return lsn.Term(s.state.Load().term(name)), nil
}

// Forget removes groups that are open on this node no longer; if one is opened
// again see Group. It does not wait for the disk: the next write takes it along,
// or Close. A crash before that forgets nothing.
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
	delete(s.Idle, group)
}

// idleStarts is how many starts of the node in a row may not open a group before it is
// forgotten: its election ended in a crash, or is not configured any more.
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
// cost no write.
//
// A term that is above lsn.MaxTerm or below the group's durable one is an
// error and nothing is written. An error that wraps ErrNotDurable is final: the
// terms may or may not be on disk, every later write fails likewise, and the
// node must stop taking part.
func (s *Store) Persist(terms map[string]lsn.Term) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.state.Load()
	next := now.clone()
	for _, group := range slices.Sorted(maps.Keys(terms)) {
		if err := next.raise(group, terms[group]); err != nil {
			return fmt.Errorf("persist terms in %s: %w", s.dir, err)
		}
	}
	if s.failed == nil && maps.Equal(next.Groups, now.Groups) {
		return nil
	}
	return s.commit(fmt.Sprintf("persist the terms of %d groups", len(terms)), next)
}

// raise sets the term of group in a state that is not current yet.
func (s state) raise(group string, term lsn.Term) error {
	if err := checkName("group", group); err != nil {
		return err
	}
	if !term.Valid() {
		return fmt.Errorf("group %q: term %d is above the highest valid term %d",
			group, term, lsn.MaxTerm)
	}
	if durable := s.term(group); uint64(term) < durable {
		return fmt.Errorf("group %q: term %d is below the durable term %d: a term never goes down",
			group, term, durable)
	}
	if term > 0 {
		s.Groups[group] = uint64(term)
	}
	return nil
}

// term is the lowest term that group may have.
func (s state) term(group string) uint64 {
	term, ok := s.Groups[group]
	if !ok {
		term = s.Forgotten
	}
	return max(term, s.floor())
}

// checkName demands what JSON stores unchanged: two names that differ in bytes
// that are not UTF-8 would become one.
func checkName(what, name string) error {
	if name == "" || !utf8.ValidString(name) {
		return fmt.Errorf("the name of a %s must be UTF-8 and not empty, not %q", what, name)
	}
	return nil
}

package store

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/lsn"
)

// Record is what is durable of one election group.
type Record struct {
	Term   lsn.Term // the highest term persisted, or an emergency's floor above it; 0 if none was
	Booted bool     // the group had been started on this directory before
}

// Group returns the record of the group called name, as it was before the call,
// and durably marks the group as booted. So a node that dies after it granted
// anything is seen as restarted when it comes back.
//
// The name must be UTF-8 and not empty. The error wraps ErrNotDurable if the mark
// could not be written.
func (s *Store) Group(name string) (Record, error) {
	if err := checkName("group", name); err != nil {
		return Record{}, fmt.Errorf("start a group: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if term, booted := s.state.Groups[name]; booted {
		return Record{Term: lsn.Term(max(term, s.state.floor())), Booted: true}, nil
	}
	next := s.state.clone()
	next.Groups[name] = 0
	return Record{Term: lsn.Term(s.state.floor())}, s.commit(fmt.Sprintf("mark group %q as booted", name), next)
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
	next := s.state.clone()
	for _, group := range slices.Sorted(maps.Keys(terms)) {
		if err := next.raise(group, terms[group]); err != nil {
			return fmt.Errorf("persist terms in %s: %w", s.dir, err)
		}
	}
	if s.failed == nil && maps.Equal(next.Groups, s.state.Groups) {
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
		return fmt.Errorf("group %q: term %d is above the highest valid term %d", group, term, lsn.MaxTerm)
	}
	if durable := max(s.Groups[group], s.floor()); uint64(term) < durable {
		return fmt.Errorf("group %q: term %d is below the durable term %d: a term never goes down", group, term, durable)
	}
	s.Groups[group] = uint64(term)
	return nil
}

// checkName demands what JSON stores unchanged: two names that differ in bytes
// that are not UTF-8 would become one.
func checkName(what, name string) error {
	if name == "" || !utf8.ValidString(name) {
		return fmt.Errorf("the name of a %s must be UTF-8 and not empty, not %q", what, name)
	}
	return nil
}

package store

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Durable is what is kept of a group.
type Durable struct {
	Terms elector.Terms
	// Record is the newest that the node accepted; zero for none. Its term is at most
	// Terms.Entered.
	Record elector.Record
	// Value is that of Record. It must not be changed.
	Value []byte
}

// Group returns that with which the named group starts, and notes that it was opened in this
// run. The terms are the group's durable ones or, if that is higher, the floor of an emergency. A
// group without durable terms may have been forgotten: it starts at the highest reserved term of
// any forgotten group. So this node has never voted in the group above Reserved, and it may vote
// only there.
//
// The name must be UTF-8 and not empty. Group waits for the disk only if a write is under way, or
// to read a value. The error wraps ErrCorrupt if the value is damaged or gone.
func (s *Store) Group(name string) (Durable, error) {
	if err := checkName("group", name); err != nil {
		return Durable{}, fmt.Errorf("start a group: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, idle := s.state.Load().Idle[name]; idle {
		next := s.state.Load().clone()
		delete(next.Idle, name)
		s.state.Store(&next)
		s.ahead = true
	}
	st := s.state.Load()
	d := Durable{Terms: st.terms(name), Record: st.Records[name]}
	if d.Record.Value.Size == 0 {
		return d, nil
	}
	value, err := s.file.value(name)
	if err == nil && sha256.Sum256(value) != d.Record.Value.Hash {
		err = fmt.Errorf("%w: it has %d bytes with another hash than %s names", ErrCorrupt,
			len(value), d.Record)
	}
	if err != nil {
		return Durable{}, fmt.Errorf("read the value of group %q in %s: %w; %s", name, s.dir, err,
			corruptAdvice)
	}
	d.Value = value
	return d, nil
}

// Forget removes groups that are no longer open on this node; for one that is opened again
// see Group. It does not wait for the disk: the next write, or Close, saves the change. A
// crash before that forgets nothing. A group with a record is kept: a quorum may count on that.
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
	if _, has := s.Records[group]; has {
		return
	}
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

// Persist makes what is given of some groups durable, all or none, in one transaction. When it
// returns nil it is on disk; what already was costs no write. Reserved may go down: a node that
// stops gives back what it did not use. A zero Record leaves that on disk as it is. The value of a
// record may be nil if that on disk is the same; it must not be changed afterwards.
//
// It is an error, and nothing is written, if a reserved term is above lsn.MaxTerm or below the
// entered one, if an entered term is below the group's durable one or that of its record, if a
// record is older than that on disk or another one of the same LSN, or if a value is not that of
// its record. An error that wraps ErrNotDurable is final: the groups may or may not be on disk,
// every later write fails likewise, and the node must stop taking part.
func (s *Store) Persist(groups map[string]Durable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.state.Load()
	next, values := now.clone(), map[string][]byte{}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if err := next.set(group, groups[group], values); err != nil {
			return fmt.Errorf("persist in %s: group %q: %w", s.dir, group, err)
		}
	}
	same := maps.Equal(next.Groups, now.Groups) && maps.Equal(next.Entered, now.Entered) &&
		maps.Equal(next.Records, now.Records)
	if s.failed == nil && same {
		return nil
	}
	return s.commit(fmt.Sprintf("persist %d groups", len(groups)), next, values)
}

// set sets what is durable of group in a state that is not current yet, and adds a value that is
// new to values.
func (s *state) set(group string, d Durable, values map[string][]byte) error {
	t := d.Terms
	switch durable := s.terms(group); {
	case checkName("group", group) != nil:
		return checkName("group", group)
	case !t.Reserved.Valid():
		return fmt.Errorf("term %d is above the highest valid term %d", t.Reserved, lsn.MaxTerm)
	case t.Entered > t.Reserved:
		return fmt.Errorf("term %d is above the highest reserved term %d", t.Entered, t.Reserved)
	case t.Entered < durable.Entered:
		return fmt.Errorf("term %d is below the durable term %d: a term never goes down",
			t.Entered, durable.Entered)
	}
	if err := s.setRecord(group, d, values); err != nil {
		return err
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

// setRecord is the part of set for the record.
func (s *state) setRecord(group string, d Durable, values map[string][]byte) error {
	r, durable := d.Record, s.Records[group]
	if r == (elector.Record{}) || r == durable {
		return nil
	}
	isNew := r.Value.Hash != durable.Value.Hash
	switch err := r.Check(); {
	case err != nil:
		return err
	case r.LSN.Compare(durable.LSN) <= 0:
		return fmt.Errorf("%s does not follow the durable %s", r, durable)
	case r.LSN.Term > d.Terms.Entered:
		return fmt.Errorf("the term of %s is above the entered term %d", r, d.Terms.Entered)
	case (isNew || d.Value != nil) && (len(d.Value) != int(r.Value.Size) ||
		r.Value.Hash != [32]byte{} && sha256.Sum256(d.Value) != r.Value.Hash):
		return fmt.Errorf("a value of %d bytes is not that of %s", len(d.Value), r)
	}
	if isNew {
		values[group] = d.Value
	}
	if s.Records == nil {
		s.Records = records{}
	}
	s.Records[group] = r
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

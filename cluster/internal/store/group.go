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
	Record elector.Record `json:",omitzero"`
	// Value is that of Record. It must not be changed.
	Value []byte `json:"-"`
}

// Group returns that with which the named group starts, and notes that it was opened in this
// run. The terms are the group's durable ones or, if that is higher, the floor of an emergency. A
// group without durable terms may have been forgotten. It starts as after a crash: it has entered
// no term, and may have voted up to the highest reserved term of any forgotten group. So this node
// has never voted in the group above Reserved, and it may vote only there.
//
// The name must be UTF-8 and not empty. Group waits for the disk only if the group has a value.
// The error wraps ErrCorrupt if the value of the record is damaged or gone.
func (s *Store) Group(name string) (Durable, error) {
	if err := checkName("group", name); err != nil {
		return Durable{}, fmt.Errorf("start a group: %w", err)
	}
	d, ok := s.Known(name)
	if ok {
		return d, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d = Durable{Terms: s.state.Load().terms(name), Record: s.state.Load().Records[name]}
	var err error
	if d.Value, err = s.value(name); err != nil {
		return Durable{}, fmt.Errorf("%w: %s: %w; %s", ErrCorrupt, s.dir, err, corruptAdvice)
	}
	return d, nil
}

// Known is Group for a group without a value, and reports whether the group is one. It never waits
// for the disk.
func (s *Store) Known(name string) (d Durable, ok bool) {
	s.maps.Lock()
	defer s.maps.Unlock()
	st := s.state.Load()
	if _, idle := st.Idle[name]; idle {
		s.opened = append(s.opened, name)
	}
	d = Durable{Terms: st.terms(name), Record: st.Records[name]}
	return d, d.Record.Value.Size == 0 && checkName("group", name) == nil
}

// value returns that of a group's record.
func (s *Store) value(group string) (value []byte, err error) {
	r := s.state.Load().Records[group]
	if r.Value.Size == 0 {
		return nil, nil
	}
	value, pending := s.values[group]
	if !pending {
		value, err = s.file.value(group)
	}
	if err == nil && sha256.Sum256(value) != r.Value.Hash {
		err = fmt.Errorf("group %q: a value of %d bytes is not that of %s", group, len(value), r)
	}
	return value, err
}

// manyGroups is the number of groups with an entry from which on others get none while they run: a
// hundred thousand that reserve their first terms at a time would be written anew with each commit.
const manyGroups = 64

// sharedTerms is how many terms groups without an entry can reserve.
const sharedTerms = 32

// shares reports whether a group can reserve terms without an entry: Forgotten, which serves all
// such groups, is at least as high then. After a crash such a group starts like one that was
// forgotten, so the file must have no entry of it either. It gets its entry when it gives back what
// it did not use, or needs more.
func (s *Store) shares(group string, d Durable) bool {
	st := s.state.Load()
	_, known := st.Groups[group]
	return !known && !s.dropped[group] && d.Record == (elector.Record{}) &&
		d.Terms.Entered < d.Terms.Reserved && uint64(d.Terms.Reserved) <= st.used+sharedTerms
}

// GiveBack says that no group reserves terms any more: all that did have an entry. So groups
// without one begin at the next start as they did at this one. Close saves that.
func (s *Store) GiveBack() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maps.Lock()
	defer s.maps.Unlock()
	if st := s.state.Load(); st.Forgotten != st.used {
		st.Forgotten, s.dirty = st.used, true
	}
	return nil
}

// Forget removes groups that are no longer open on this node; for one that is opened again
// see Group. It does not wait for the disk: the next write, or Close, saves the change. A
// crash before that forgets nothing. A group with a record is kept: a quorum may count on that.
func (s *Store) Forget(groups ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maps.Lock()
	defer s.maps.Unlock()
	st := s.state.Load()
	for _, group := range groups {
		if _, recorded := st.Groups[group]; recorded {
			s.dirty, s.dropped[group] = true, true
		}
		st.forget(group)
	}
}

// forget removes a group.
func (s *state) forget(group string) {
	if _, has := s.Records[group]; has {
		return
	}
	s.used = max(s.used, s.Groups[group])
	s.Forgotten = max(s.Forgotten, s.used)
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
	now, news := s.state.Load(), make(map[string]Durable, len(groups))
	shared := uint64(0) // reserved by groups without an entry
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		d, isNew, err := now.news(group, groups[group])
		switch {
		case err != nil:
			return fmt.Errorf("persist in %s: group %q: %w", s.dir, group, err)
		case len(now.Groups)+len(news) >= s.many && s.shares(group, d):
			shared = max(shared, uint64(d.Terms.Reserved))
		case isNew:
			news[group] = d
		}
	}
	s.maps.Lock()
	now.Forgotten = max(now.Forgotten, shared)
	s.maps.Unlock()
	if s.failed == nil && len(news) == 0 && shared <= s.saved {
		return nil
	}
	doing := fmt.Sprintf("persist %d groups", len(news))
	if s.journal != nil && shared <= s.saved {
		batch, err := encodeBatch(news)
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if s.journal.fits(batch) {
			err = s.write(doing, journalFile, func() error { return s.journal.append(batch) })
			if err == nil {
				s.maps.Lock()
				defer s.maps.Unlock()
				now.set(news, s.values)
			}
			return err
		}
	}
	next, values := now.clone(), map[string][]byte{}
	next.set(news, values)
	return s.commit(doing, next, values)
}

// news returns what d would change of group, if it changes anything, or what forbids that. What it
// returns has no record if that stays, and no value if that stays.
func (s *state) news(group string, d Durable) (news Durable, isNew bool, err error) {
	t, durable, has := d.Terms, s.terms(group), s.Records[group]
	newRecord := d.Record != (elector.Record{}) && d.Record != has
	if !newRecord {
		d.Record = elector.Record{}
	}
	if !newRecord || d.Record.Value.Hash == has.Value.Hash {
		d.Value = nil
	}
	_, known := s.Groups[group]
	isNew = newRecord || t.Reserved > 0 && (t != durable || !known) // it begins at term 0 anyway
	switch {
	case checkName("group", group) != nil:
		err = checkName("group", group)
	case !t.Reserved.Valid():
		err = fmt.Errorf("term %d is above the highest valid term %d", t.Reserved, lsn.MaxTerm)
	case t.Entered > t.Reserved:
		err = fmt.Errorf("term %d is above the highest reserved term %d", t.Entered, t.Reserved)
	case t.Entered < durable.Entered:
		err = fmt.Errorf("term %d is below the durable term %d: a term never goes down",
			t.Entered, durable.Entered)
	case newRecord:
		err = d.checkAfter(has)
	}
	return d, isNew, err
}

// checkAfter returns what forbids d to have its record after another.
func (d Durable) checkAfter(has elector.Record) error {
	r := d.Record
	switch err := r.Check(); {
	case err != nil:
		return err
	case r.LSN.Compare(has.LSN) <= 0:
		return fmt.Errorf("%s does not follow the durable %s", r, has)
	case r.LSN.Term > d.Terms.Entered:
		return fmt.Errorf("the term of %s is above the entered term %d", r, d.Terms.Entered)
	case r.Value != (elector.Value{}) && r.Value.Hash != has.Value.Hash &&
		sha256.Sum256(d.Value) != r.Value.Hash:
		return fmt.Errorf("a value of %d bytes is not that of %s", len(d.Value), r)
	}
	return nil
}

// set sets what is new of groups, and adds their values to values.
func (s *state) set(news map[string]Durable, values map[string][]byte) {
	if s.Entered == nil {
		s.Entered = numbers{}
	}
	if s.Records == nil {
		s.Records = map[string]elector.Record{}
	}
	for group, d := range news {
		if r := d.Record; r != (elector.Record{}) {
			if r.Value.Hash != s.Records[group].Value.Hash {
				values[group] = d.Value // may be empty
			}
			s.Records[group] = r
		}
		s.Groups[group] = uint64(d.Terms.Reserved)
		delete(s.Entered, group)
		delete(s.Idle, group) // the journal does not say that it was opened
		if d.Terms.Entered < d.Terms.Reserved {
			s.Entered[group] = uint64(d.Terms.Entered)
		}
	}
}

// terms are those at which group starts.
func (s state) terms(group string) elector.Terms {
	floor := s.floor()
	reserved, ok := s.Groups[group]
	if !ok {
		return elector.Terms{Entered: lsn.Term(floor), Reserved: lsn.Term(max(s.used, floor))}
	}
	entered, ok := s.Entered[group]
	if !ok {
		entered = reserved
	}
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

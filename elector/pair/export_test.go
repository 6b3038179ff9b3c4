package pair

import (
	"maps"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Access to internals for the tests in package pair_test.

// Clone returns a follower that shares nothing mutable with f.
func (f *Follower) Clone() *Follower {
	c := *f
	c.set = maps.Clone(f.set)
	return &c
}

// Clone returns a leader that shares nothing mutable with l.
func (l *Leader) Clone() *Leader {
	c := *l
	c.set, c.order = maps.Clone(l.set), slices.Clone(l.order)
	return &c
}

// Term is the term in which an election is followed; 0 if it is not.
func (f *Follower) Term(group string) lsn.Term { return f.set[group].term }

// Revision is that of the newest change.
func (f *Follower) Revision() uint64 { return f.revision }

// Times are when the newest beat came, and since when the other end has not read a change.
func (f *Follower) Times() [2]elector.Time { return [2]elector.Time{f.heard, f.readAt} }

// Counts are the sequence of the newest beat, and the revision that was not read.
func (f *Follower) Counts() [2]uint64 { return [2]uint64{f.sequence, f.read} }

// ForgetBeats lets the follower take the beats again that came before: a broken rule.
func (f *Follower) ForgetBeats() { f.sequence = 0 }

// Term is the term in which an election is followed, as far as was read; 0 if it is not.
func (l *Leader) Term(group string) lsn.Term { return l.of(group).term }

// Times are when the newest beat was sent, when the newest one that counts, and those of the acks
// that do not count yet.
func (l *Leader) Times() [4]elector.Time {
	return [4]elector.Time{l.sent, l.counted, l.early[0].SentAt, l.early[1].SentAt}
}

// Counts are the sequence of the newest beat, and the revisions of acks that do not count yet.
func (l *Leader) Counts() [3]uint64 {
	return [3]uint64{l.sequence, l.early[0].Revision, l.early[1].Revision}
}

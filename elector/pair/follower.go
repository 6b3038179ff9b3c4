package pair

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Follower is the end of a direction that follows. It owns the followed set: the elections in which
// this node follows the other one, each with the term of that leadership.
type Follower struct {
	set      map[string]followed
	revision uint64
	hash     uint64
	sequence uint64       // of the newest beat
	heard    elector.Time // when that came; 0 before the first
	read     uint64       // the revision that the other end has read ...
	readAt   elector.Time // ... since, or at which it had read all
}

type followed struct {
	term     lsn.Term // 0 if it is not followed
	observes bool
}

// NewFollower returns the end of a new session.
func NewFollower() *Follower { return &Follower{set: map[string]followed{}} }

// Join takes an election into the set, in the term of its leader: §16.1. The caller sends the
// change, if there is one. The node must have promised and acknowledged before, or observe.
func (f *Follower) Join(group string, term lsn.Term, observes bool) (c Change, changed bool) {
	old, now := f.set[group], followed{term, observes}
	if old == now {
		return Change{}, false
	}
	what := Join
	if observes {
		what = Observe
	}
	f.hash += now.hash(group) - old.hash(group)
	f.set[group] = now
	return f.change(Change{What: what, Group: group, Term: term}), true
}

// Leave takes an election out: §16.2. The caller has written down what the pair promised for it
// (Heard), and sends the change, if there is one.
func (f *Follower) Leave(group string) (c Change, changed bool) {
	old, had := f.set[group]
	if !had {
		return Change{}, false
	}
	f.hash -= old.hash(group)
	delete(f.set, group)
	return f.change(Change{What: Leave, Group: group}), true
}

// Empty takes all elections out, and begins anew: the other end has lost a change, or differs. The
// caller has written down what the pair promised for them (Heard), and sends the change.
func (f *Follower) Empty() Change {
	f.set, f.hash = map[string]followed{}, 0
	return f.change(Change{What: Empty})
}

func (f *Follower) change(c Change) Change {
	f.revision++
	c.Revision = f.revision
	return c
}

// Beat takes a beat that came at now. fresh is false for one that is not newer than all before: it
// changes nothing and is not answered (§16.3). Otherwise the node has promised every election of
// the set by it.
func (f *Follower) Beat(now elector.Time, b Beat) (a Ack, fresh bool) {
	if b.Sequence <= f.sequence {
		return Ack{}, false
	}
	f.sequence, f.heard = b.Sequence, now
	return Ack{Sequence: b.Sequence, SentAt: b.SentAt, Revision: f.revision}, true
}

// Differs reports whether a beat shows that its sender has another set at the revision of this one.
// A program is wrong then, and the set is to be emptied: §16.8.
func (f *Follower) Differs(b Beat) bool {
	return b.Revision > f.revision || b.Revision == f.revision && b.Hash != f.hash
}

// Unread takes a beat that came at now, before Beat does, and returns for how long its sender has
// read nothing although changes were sent. The link delivers nothing then, or has lost a change,
// whatever beats say: §16.9. It is 0 for a beat that is not newer than all before.
func (f *Follower) Unread(now elector.Time, b Beat) time.Duration {
	if b.Sequence <= f.sequence {
		return 0
	}
	if b.Revision != f.read || b.Revision >= f.revision {
		f.read, f.readAt = b.Revision, now
	}
	return now.Sub(f.readAt)
}

// Heard is when the newest beat came, by which this node has promised all elections of the set that
// were in it by then; 0 before the first.
func (f *Follower) Heard() elector.Time { return f.heard }

// Groups are the names of the elections of the set, sorted.
func (f *Follower) Groups() []string { return slices.Sorted(maps.Keys(f.set)) }

// Follows reports whether an election is in the set, with that term.
func (f *Follower) Follows(group string, term lsn.Term) bool { return f.set[group].term == term }

// Len is the number of elections of the set.
func (f *Follower) Len() int { return len(f.set) }

// hash is what one election adds to the hash of a set; 0 for an election that is not in it.
func (f followed) hash(group string) uint64 {
	if f.term == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(group)) // never fails
	sum := h.Sum64() ^ uint64(f.term)*0x9e3779b97f4a7c15
	if f.observes {
		sum ^= 1 << 63
	}
	return sum * 0xbf58476d1ce4e5b9
}

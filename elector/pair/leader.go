package pair

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Leader is the end of a direction that leads. Its mirror of the followed set is what that was at
// some moment: only changes that were read from the link move it (§16.8), never this end's
// elections.
type Leader struct {
	set      map[string]int32 // where in order, by group
	order    []mirrored
	looked   int // where Look goes on
	revision uint64
	hash     uint64
	sequence uint64       // of the newest beat
	sent     elector.Time // when that was sent
	counted  elector.Time // when the newest beat was sent whose ack counts; 0 for none
	// early are acks above the revision that was read, zero for none: the first one that came, and
	// the newest. With the newest alone, changes in every period would let none count.
	early [2]Ack
}

type mirrored struct {
	followed

	group string
}

// NewLeader returns the end of a new session.
func NewLeader() *Leader { return &Leader{set: map[string]int32{}} }

// Read takes the next change of the followed set from the link. It takes none if one before was
// lost or repeated, and the result is false: then the other end must begin anew (Begin).
func (l *Leader) Read(c Change) bool {
	at, known := l.set[c.Group]
	next := c.Revision == l.revision+1
	switch {
	case c.What == Empty && c.Revision > l.revision:
		l.set, l.order, l.hash = map[string]int32{}, nil, 0
	case !next || (c.What == Leave) != (c.Term == 0) || c.What == Leave && !known:
		return false
	case c.What == Join, c.What == Observe:
		if !known {
			at = int32(len(l.order))
			l.set[c.Group], l.order = at, append(l.order, mirrored{group: c.Group})
		}
		m := &l.order[at]
		l.hash -= m.hash(m.group)
		m.followed = followed{c.Term, c.What == Observe}
		l.hash += m.hash(m.group)
	case c.What == Leave:
		last := len(l.order) - 1
		l.hash -= l.order[at].hash(c.Group)
		l.order[at] = l.order[last]
		l.set[l.order[at].group] = at
		l.order[last] = mirrored{}
		l.order = l.order[:last]
		delete(l.set, c.Group)
	}
	l.revision = c.Revision
	return true
}

// Waits reports whether acks waited for changes that were read meanwhile: Count is to be called.
func (l *Leader) Waits() bool { return l.early[0] != (Ack{}) && l.early[0].Revision <= l.revision }

// Count lets such acks count.
func (l *Leader) Count() {
	for l.Waits() {
		l.counted = max(l.counted, l.early[0].SentAt)
		l.early = [2]Ack{l.early[1]}
	}
}

// Beat returns the next beat, to be sent at now. It was scheduled late before that.
func (l *Leader) Beat(now elector.Time, period, late time.Duration) Beat {
	l.sequence++
	l.sent = now
	return Beat{
		Sequence: l.sequence, SentAt: now, Period: period, Late: late,
		Revision: l.revision, Hash: l.hash,
	}
}

// Acked takes an ack in any order: §16.4. One above the revision that was read waits until the
// link has come so far: see Count. The result is false for the echo of a beat that was never sent,
// which changes nothing.
func (l *Leader) Acked(a Ack) bool {
	if a.Sequence == 0 || a.Sequence > l.sequence || a.SentAt > l.sent {
		return false
	}
	switch {
	case a.Revision <= l.revision:
		l.counted = max(l.counted, a.SentAt)
	case l.early[0] == (Ack{}):
		l.early[0] = a
	case a.SentAt > l.early[1].SentAt:
		l.early[1] = a
	}
	return true
}

// Support is the send time of the newest beat that counts as acked for an election which this node
// leads in term: §16.4. It is 0 if there is none, or the other node does not follow in that term,
// or only observes.
func (l *Leader) Support(group string, term lsn.Term) elector.Time {
	if !l.Supports(group, term) {
		return 0
	}
	return l.counted
}

// Supports reports whether acks count for an election which this node leads in term: the other node
// follows in that term, and does not only observe.
func (l *Leader) Supports(group string, term lsn.Term) bool {
	return term != 0 && l.of(group) == followed{term, false}
}

// Counted is the send time of the newest beat whose ack counts; 0 for none.
func (l *Leader) Counted() elector.Time { return l.counted }

// Answered is the send time of the newest beat that was acked, whether that counts or not; 0 for
// none.
func (l *Leader) Answered() elector.Time {
	return max(l.counted, l.early[0].SentAt, l.early[1].SentAt)
}

// Revision is that of the newest change that was read.
func (l *Leader) Revision() uint64 { return l.revision }

// Follows reports whether the other node follows an election in that term, as far as was read.
func (l *Leader) Follows(group string, term lsn.Term) bool {
	return term != 0 && l.of(group).term == term
}

// of is how the other node follows an election; zero if it does not.
func (l *Leader) of(group string) (f followed) {
	if at, known := l.set[group]; known {
		f = l.order[at].followed
	}
	return f
}

// Len is the number of elections of the mirror. Without any no beat needs to be sent.
func (l *Leader) Len() int { return len(l.order) }

// Look shows the next at most n elections of the mirror to look, so that all had their turn after
// some calls: §16.8.
func (l *Leader) Look(n int, look func(group string, term lsn.Term)) {
	for range min(n, len(l.order)) {
		if l.looked >= len(l.order) {
			l.looked = 0
		}
		m := l.order[l.looked]
		l.looked++
		look(m.group, m.term)
	}
}

package recording

import (
	"cmp"
	"slices"
	"time"
)

// Leadership is a node's time as leader of an election in one term, as one node saw it.
type Leadership struct {
	Group  string    `json:"group"`
	Leader string    `json:"leader"`
	Term   uint64    `json:"term"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to,omitzero"` // none while it goes on
	// Reason is why it ended; "" while it goes on, or if the node that tells of it ended.
	Reason string `json:"reason,omitempty"`
	// ReasonBy is the node that gives the reason, in what Merge returns. A node other than the
	// leader only saw the end: it may say LEADER_CEDED where an operator stopped the leader.
	ReasonBy string `json:"reason_by,omitempty"`
	Node     string `json:"seen_by"` // the leader itself, unless its own word is missing
}

// Leaderships are those that one node has seen, by the beginning.
func Leaderships(records []Record) (all []Leadership) {
	current := map[string]int{} // index of the one that goes on, by group
	for i := range records {
		r := &records[i]
		switch at, on := current[r.Group]; {
		case r.Kind == Started:
			for _, at := range current {
				all[at].To = r.Time
			}
			clear(current)
		case r.Kind != Transition || on && all[at].Leader == r.Leader && all[at].Term == r.Term:
		default:
			if on {
				all[at].To, all[at].Reason = r.Time, r.Reason
				delete(current, r.Group)
			}
			if r.Leader != "" {
				current[r.Group] = len(all)
				all = append(all, Leadership{Group: r.Group, Leader: r.Leader, Term: r.Term,
					From: r.Time, Node: r.Node})
			}
		}
	}
	return all
}

// Merge is what several nodes together have seen of an election, by the term. The leader's own
// word counts; the others say how it ended if it cannot. A leadership ends before the next one
// begins: a leader that was paused says so too late, and it ended when the others gave it up.
func Merge(group string, seen []Leadership) (all []Leadership) {
	type key struct {
		term   uint64
		leader string
	}
	views, keys := map[key][]Leadership{}, []key(nil)
	for _, l := range seen {
		k := key{l.Term, l.Leader}
		if l.Group != group {
			continue
		}
		if views[k] == nil {
			keys = append(keys, k)
		}
		views[k] = append(views[k], l)
	}
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(a.term, b.term) })
	next := time.Time{}
	for _, k := range slices.Backward(keys) {
		all = append(all, merge(views[k], next))
		next = beginning(views[k]).From
	}
	slices.Reverse(all)
	return all
}

// beginning is the view whose start counts: the leader's own, or the first.
func beginning(views []Leadership) Leadership {
	return slices.MinFunc(views, func(a, b Leadership) int {
		return cmp.Or(-cmp.Compare(a.own(), b.own()), a.From.Compare(b.From))
	})
}

// own is 1 if the leader itself tells.
func (l *Leadership) own() int {
	if l.Node == l.Leader {
		return 1
	}
	return 0
}

// merge makes one of all views of a leadership. next is when the next leadership began; if
// it is zero there was none, and the leadership goes on if any view says so. The end is the
// last one that a view has before next.
func merge(views []Leadership, next time.Time) Leadership {
	is, end := beginning(views), views[0]
	for _, v := range views[1:] {
		if cmp.Or(cmp.Compare(v.rank(next), end.rank(next)), v.To.Compare(end.To)) > 0 {
			end = v
		}
	}
	is.To, is.Reason = end.To, end.Reason
	if is.Reason != "" {
		is.ReasonBy = end.Node
	}
	early := func(to time.Time) bool { return !to.IsZero() && !to.After(next) }
	if next.IsZero() || early(is.To) {
		return is
	}
	is.To = time.Time{}
	for _, v := range views {
		if early(v.To) && v.To.After(is.To) {
			is.To = v.To
		}
	}
	if is.To.IsZero() {
		is.To = next
	}
	return is
}

// rank is how well a view tells the end of a leadership: best by the leader's own reason, then
// by the reason of another node. Among equals the last one counts: a follower that was cut off
// lost its leader before the others did.
func (l *Leadership) rank(next time.Time) int {
	switch {
	case l.own() == 1 && l.Reason != "":
		return 3
	case l.To.IsZero() && next.IsZero():
		return 2
	case l.Reason != "":
		return 1
	}
	return 0
}

package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// direction is one way of a link.
type direction struct{ from, to history.NodeID }

// band is a time in which the same directions are cut.
type band struct {
	from, to time.Duration
	cut      map[direction]bool
}

// change is a cut that begins (1) or ends (-1).
type change struct {
	at  time.Duration
	way direction
	by  int
}

// bands divides the run into times with the same cuts; times without any are
// left out.
func bands(h *history.History) []band {
	var all []band
	active := map[direction]int{}
	changes := changesOf(h)
	for i, c := range changes {
		if active[c.way] += c.by; active[c.way] == 0 {
			delete(active, c.way)
		}
		if i+1 < len(changes) && changes[i+1].at > c.at && len(active) > 0 {
			all = append(all, band{c.at, changes[i+1].at, setOf(active)})
		}
	}
	return all
}

// changesOf are the beginnings and ends of cuts within the run, in order.
func changesOf(h *history.History) []change {
	var all []change
	for _, c := range h.Cuts {
		way, from, to := direction{c.From, c.To}, max(c.Start, 0), min(c.End, h.Duration)
		if from < to {
			all = append(all, change{from, way, 1}, change{to, way, -1})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return all
}

func setOf(active map[direction]int) map[direction]bool {
	set := make(map[direction]bool, len(active))
	for d := range active {
		set[d] = true
	}
	return set
}

// describe names what is cut as the scenario format would: "a-b" for both
// directions, "a->b" for one, and "a-*" where a hears and reaches nobody.
func (b band) describe(lanes []history.Lane) string {
	left := make(map[direction]bool, len(b.cut))
	for d := range b.cut {
		left[d] = true
	}
	var names []string
	for i := range lanes {
		if id := lanes[i].Node; len(lanes) > 2 && isolated(b.cut, id, lanes) {
			names = append(names, string(id)+"-*")
			take(left, id, lanes)
		}
	}
	for i := range lanes {
		for j := range lanes[i+1:] {
			names = appendLink(names, left, lanes[i].Node, lanes[i+1+j].Node)
		}
	}
	return strings.Join(names, ", ")
}

// isolated reports whether every direction to and from id is cut.
func isolated(cut map[direction]bool, id history.NodeID, lanes []history.Lane) bool {
	for i := range lanes {
		if peer := lanes[i].Node; peer != id && (!cut[direction{id, peer}] || !cut[direction{peer, id}]) {
			return false
		}
	}
	return true
}

// take removes every direction to and from id.
func take(left map[direction]bool, id history.NodeID, lanes []history.Lane) {
	for i := range lanes {
		delete(left, direction{id, lanes[i].Node})
		delete(left, direction{lanes[i].Node, id})
	}
}

// appendLink names what is cut between two nodes, if anything is.
func appendLink(names []string, cut map[direction]bool, a, b history.NodeID) []string {
	there, back := cut[direction{a, b}], cut[direction{b, a}]
	switch {
	case there && back:
		return append(names, string(a)+"-"+string(b))
	case there:
		return append(names, string(a)+"->"+string(b))
	case back:
		return append(names, string(b)+"->"+string(a))
	}
	return names
}

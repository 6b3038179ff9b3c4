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
	text     string // what is cut
}

// bands divides the run into times with the same cuts; times without any are
// left out.
func bands(h *history.History) []band {
	type change struct {
		at  time.Duration
		way direction
		by  int // 1 where a cut begins, -1 where one ends
	}
	var changes []change
	for _, c := range h.Cuts {
		way, from, to := direction{c.From, c.To}, max(c.Start, 0), min(c.End, h.Duration)
		if from < to {
			changes = append(changes, change{from, way, 1}, change{to, way, -1})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var all []band
	cut := map[direction]int{}
	for i, c := range changes {
		if cut[c.way] += c.by; cut[c.way] == 0 {
			delete(cut, c.way)
		}
		if i+1 < len(changes) && changes[i+1].at > c.at && len(cut) > 0 {
			all = append(all, band{c.at, changes[i+1].at, describeCut(cut, h.Lanes)})
		}
	}
	return all
}

// describeCut names what is cut as the scenario format would: "a-b" for both
// directions, "a->b" for one, and "a-*" where a reaches nobody and nobody
// reaches a.
func describeCut(cut map[direction]int, lanes []history.Lane) string {
	var names []string
	isolated := map[history.NodeID]bool{}
	for i := range lanes {
		id, ways := lanes[i].Node, 0
		for way := range cut {
			if way.from == id || way.to == id {
				ways++
			}
		}
		if len(lanes) > 2 && ways == 2*(len(lanes)-1) {
			isolated[id] = true
			names = append(names, string(id)+"-*")
		}
	}
	for i := range lanes {
		for j := i + 1; j < len(lanes); j++ {
			a, b := lanes[i].Node, lanes[j].Node
			there, back := cut[direction{a, b}] > 0, cut[direction{b, a}] > 0
			switch {
			case isolated[a] || isolated[b]:
			case there && back:
				names = append(names, string(a)+"-"+string(b))
			case there:
				names = append(names, string(a)+"->"+string(b))
			case back:
				names = append(names, string(b)+"->"+string(a))
			}
		}
	}
	return plain(strings.Join(names, ", "))
}

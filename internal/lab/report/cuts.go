package report

import (
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// band is a time in which the same directions are cut.
type band struct {
	from, to time.Duration
	text     string // what is cut
}

// bands divides the run into times with the same cuts; times without any are
// left out.
func bands(h *history.History) (all []band) {
	var moments []time.Duration
	for _, c := range h.Cuts {
		moments = append(moments, max(c.Start, 0), min(c.End, h.Duration))
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	for i := 1; i < len(moments); i++ {
		from, to, cut := moments[i-1], moments[i], map[history.Cut]bool{}
		for _, c := range h.Cuts {
			if c.Start < to && from < c.End {
				cut[history.Cut{From: c.From, To: c.To}] = true
			}
		}
		if len(cut) > 0 {
			all = append(all, band{from, to, describeCut(cut, h.Lanes)})
		}
	}
	return all
}

// describeCut names what is cut as the scenario format would: "a-b" for both
// directions, "a->b" for one, and "a-*" where a reaches nobody and nobody
// reaches a.
func describeCut(cut map[history.Cut]bool, lanes []history.Lane) string {
	var names []string
	ways, isolated := map[history.NodeID]int{}, map[history.NodeID]bool{}
	for way := range cut {
		ways[way.From]++
		ways[way.To]++
	}
	for _, l := range lanes {
		if len(lanes) > 2 && ways[l.Node] == 2*(len(lanes)-1) {
			isolated[l.Node] = true
			names = append(names, string(l.Node)+"-*")
		}
	}
	for i := range lanes {
		for j := i + 1; j < len(lanes); j++ {
			a, b := lanes[i].Node, lanes[j].Node
			there, back := cut[history.Cut{From: a, To: b}], cut[history.Cut{From: b, To: a}]
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

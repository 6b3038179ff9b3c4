package report

import (
	"fmt"
	"strings"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// pageData is everything that the page shows.
func pageData(runs []Run) webData {
	d := webData{Bucket: history.BucketSize.Seconds(), Kinds: []string{}, Runs: []webRun{}}
	for st, look := range looks {
		d.States = append(d.States, webState{look.class, string(look.letter), look.name, hatchOf[st] != ""})
	}
	for _, st := range legend {
		d.Legend = append(d.Legend, int(st))
	}
	for k := elector.Kind(0); k == 0 || k.Valid(); k++ {
		d.Kinds = append(d.Kinds, k.String())
	}
	for _, r := range runs {
		d.Runs = append(d.Runs, webRunOf(r))
	}
	return d
}

func webRunOf(r Run) webRun {
	h := r.History
	w := webRun{
		Scenario: plain(h.Scenario), Variant: plain(r.variant()), About: plain(r.About), Mode: h.Mode, Seed: fmt.Sprint(h.Seed),
		Duration: micro(h.Duration), Quorum: h.Quorum, Failures: r.failures(),
		Figures: [][2]string{}, Nodes: []webNode{}, Sent: [][2]float64{},
		Cuts: webCuts(h), Bands: webBands(h), Reigns: webReigns(h), Marks: webMarks(h), Events: webEvents(h), Arrows: webArrows(h),
		Verdicts: webVerdicts(r), Problems: webProblems(h),
	}
	sum := r.summary()
	for _, f := range figures {
		w.Figures = append(w.Figures, [2]string{f.name, f.value(sum)})
	}
	for i := range h.Lanes {
		l := &h.Lanes[i]
		w.Nodes = append(w.Nodes, webNode{plain(string(l.Node)), laneName(l), webSpans(l, h.Duration)})
	}
	for _, b := range h.Sent {
		w.Sent = append(w.Sent, [2]float64{micro(b.At), float64(b.Count)})
	}
	return w
}

// places maps nodes to the indices of their lanes.
func places(h *history.History) map[history.NodeID]int {
	at := make(map[history.NodeID]int, len(h.Lanes))
	for i := range h.Lanes {
		at[h.Lanes[i].Node] = i
	}
	return at
}

func webCuts(h *history.History) []webCut {
	cuts, at := []webCut{}, places(h)
	for _, c := range h.Cuts {
		source, known := at[c.From]
		target, both := at[c.To]
		if known && both {
			cuts = append(cuts, webCut{source, target, micro(c.Start), microOrNil(c.End)})
		}
	}
	return cuts
}

func webBands(h *history.History) []webBand {
	all := []webBand{}
	for _, b := range bands(h) {
		all = append(all, webBand{micro(b.from), micro(b.to), plain(b.describe(h.Lanes))})
	}
	return all
}

func webReigns(h *history.History) []webReign {
	all := []webReign{}
	for _, r := range h.Reigns(0, h.Duration) {
		all = append(all, webReign{micro(r.From), micro(r.To), plain(string(r.Leader))})
	}
	return all
}

func webMarks(h *history.History) []webMark {
	all := []webMark{}
	for _, m := range h.Marks {
		all = append(all, webMark{micro(m.At), plain(m.Text), plain(m.Note)})
	}
	return all
}

func webEvents(h *history.History) []webEvent {
	all := []webEvent{}
	for _, e := range happenings(h) {
		all = append(all, webEvent{micro(e.at), e.node, plain(strings.TrimPrefix(e.text, "* "))})
	}
	return all
}

// webArrows are lists to keep the page small: sent, received or nil, from, to,
// kind, text.
func webArrows(h *history.History) []any {
	arrows, at := []any{}, places(h)
	for _, a := range h.Arrows {
		from, known := at[a.From]
		to, both := at[a.To]
		if known && both {
			arrows = append(arrows, [6]any{micro(a.Sent), microOrNil(a.Received), from, to, a.Kind, plain(a.Text)})
		}
	}
	return arrows
}

func webVerdicts(r Run) []webVerdict {
	all := []webVerdict{}
	for _, v := range r.Verdicts {
		all = append(all, webVerdict{v.Held, plain(v.Text), plain(v.Seen), v.where(), micro(v.At)})
	}
	return all
}

func webProblems(h *history.History) []webProblem {
	all := []webProblem{}
	for _, text := range h.Broken {
		all = append(all, webProblem{"invariant broken", text})
	}
	for _, text := range h.Problems {
		all = append(all, webProblem{"problem with the run", text})
	}
	return all
}

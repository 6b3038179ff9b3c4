package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// The table of the page is between these lines; the rest is written by hand.
const (
	tableBegins = "<!-- written by make gray -->\n"
	tableEnds   = "<!-- end of what make gray has written -->\n"
)

// rewrite writes the table of the page anew.
func (g *gray) rewrite() error {
	text, err := os.ReadFile(g.page)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has not the lines %q and %q", g.page, tableBegins, tableEnds)
	}
	text = []byte(before + tableBegins + "\n" + g.table() + "\n" + tableEnds + after)
	return os.WriteFile(g.page, text, 0o644)
}

// table is what the page shows of a run.
func (g *gray) table() string {
	m := g.machine
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d cores, Linux %s, %s, %s;\nload average %s;\n", m.cpu, m.cores, m.kernel,
		m.golang, m.date.UTC().Format(time.DateOnly), strings.Join(g.loads, " at the start, ")+
			" at the end")
	fmt.Fprintf(&b, "each failure for %s, %s; hashicorp/raft %s, etcd %s.\n\n", g.lasts,
		runsOf(g.runs), m.versions["github.com/hashicorp/raft"],
		m.versions["go.etcd.io/etcd/server/v3"])
	t := &table{rows: [][]string{{"failure"}}}
	for _, c := range g.columns {
		t.rows[0] = append(t.rows[0], c.title)
	}
	for _, f := range g.failures {
		row := []string{f.name}
		for i := range g.columns {
			text := "skipped"
			if runs := g.cells[f.name]; runs != nil && len(runs[i]) > 0 {
				text = f.cell(runs[i])
			}
			row = append(row, text)
		}
		t.rows = append(t.rows, row)
	}
	b.WriteString(t.String())
	for _, why := range g.skipped {
		fmt.Fprintf(&b, "\nNot played: %s\n", strings.TrimSpace(why))
	}
	return b.String()
}

func runsOf(n int) string {
	if n == 1 {
		return "one run"
	}
	return fmt.Sprintf("median of %d runs", n)
}

// cell says in words what happened in several runs: of each figure, the median.
func (f failure) cell(runs []played) string {
	gap := median(runs, func(p played) time.Duration {
		if p.never {
			return math.MaxInt64
		}
		return p.gap
	})
	moves := median(runs, func(p played) int { return p.moves })
	share := median(runs, func(p played) float64 { return p.share })
	twice := median(runs, func(p played) time.Duration { return p.twice })
	words := []string{"**never**"}
	switch {
	case gap < brief:
		words[0] = "goes on"
	case gap < math.MaxInt64:
		words[0] = figure(gap.Seconds()) + " s"
	}
	if needless := moves - f.moves; needless > 0 {
		words = append(words, fmt.Sprintf("%d needless", needless))
	}
	// Of the time that is left beside the gap, much was lost.
	if lost := 1 - share - gap.Seconds()/runs[0].lasts.Seconds(); lost > 0.2 && gap < math.MaxInt64 {
		words = append(words, fmt.Sprintf("%.0f %% of the work", 100*share))
	}
	if twice > brief {
		words = append(words, "two at once for "+figure(twice.Seconds())+" s")
	}
	if median(runs, func(p played) int { return p.ended }) > 0 {
		words = append(words, "the process ended")
	}
	return strings.Join(words, ", ")
}

// median is the lower of the two in the middle, if there are two.
func median[T cmp.Ordered](runs []played, of func(played) T) T {
	var all []T
	for _, p := range runs {
		all = append(all, of(p))
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

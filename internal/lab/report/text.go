package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/fatih/color"
)

// mostEvents bounds the list of what happened. It is for reading; JSON has all.
const mostEvents = 60

// Text writes runs for a terminal: figures, a lane per node over time, what
// happened, and the verdicts. Without color it is plain ASCII but for names. It
// returns the error of w.
func Text(w io.Writer, runs []Run, o TextOptions) error {
	p := newPrinter(w, o)
	if len(runs) > 0 {
		p.heading(runs)
		p.figures(runs)
	}
	for _, r := range runs {
		p.run(r, runs)
	}
	return p.close()
}

// heading says which scenario this is and what it teaches.
func (p *printer) heading(runs []Run) {
	h := runs[0].History
	about := fmt.Sprintf("%s, seed %d, %s, quorum %d of %d voters", h.Mode, h.Seed, seconds(h.Duration), h.Quorum, runs[0].voters())
	p.line(p.paint(plain(h.Scenario), color.Bold))
	if runs[0].About != "" {
		p.wrapped("  ", 2, runs[0].About)
	}
	p.wrapped("  ", 2, about)
}

// run writes one of the runs on the axis of all.
func (p *printer) run(r Run, all []Run) {
	p.line()
	if r.History.Variant != "" || len(all) > 1 {
		p.line(p.paint("== "+clip(plain(r.variant()), p.width-6)+" ==", color.Bold))
	}
	p.lanes(r.History, all)
	p.events(r.History, mostEvents/len(all))
	p.problems(r)
	p.verdicts(r)
}

// problems writes invariants that broke and what else went wrong.
func (p *printer) problems(r Run) {
	for _, text := range r.History.Broken {
		p.line()
		p.line(p.tick(false), p.paint("invariant broken", color.FgRed, color.Bold))
		p.block(text)
	}
	for _, text := range r.History.Problems {
		p.line()
		p.line(p.tick(false), p.paint("problem with the run", color.FgRed, color.Bold))
		p.block(text)
	}
}

// block writes text of several lines as it is.
func (p *printer) block(text string) {
	for l := range strings.Lines(text) {
		p.line("     ", plain(strings.TrimRight(l, "\r\n")))
	}
}

// verdicts writes each expectation with what was seen.
func (p *printer) verdicts(r Run) {
	if len(r.Verdicts) == 0 {
		return
	}
	p.line()
	p.line("expected")
	for _, v := range r.Verdicts {
		p.wrapped("  "+p.tick(v.Held), 7, v.Text)
		p.seen(v)
	}
}

// seen writes what was seen, and where if that was not as expected.
func (p *printer) seen(v Verdict) {
	if v.Seen == "" {
		return
	}
	p.wrapped("       ", 7, v.where()+": "+v.Seen)
}

// voters counts the voting nodes.
func (r Run) voters() int {
	n := 0
	for _, l := range r.History.Lanes {
		if l.Voter {
			n++
		}
	}
	return n
}

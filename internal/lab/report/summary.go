package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Summary writes one line for each run, then totals: of one that held its
// figures, of one that did not the first thing that went wrong. It returns the
// error of w.
func Summary(w io.Writer, runs []Run, o TextOptions) error {
	p := newPrinter(w, o)
	width, failed := 0, 0
	for _, r := range runs {
		width = max(width, min(utf8.RuneCountInString(plain(r.title())), p.width/2))
		if !r.Held() {
			failed++
		}
	}
	for _, r := range runs {
		p.summaryLine(r, width)
	}
	p.line(p.tick(failed == 0), totals(len(runs), failed))
	return p.close()
}

// summaryLine writes one run; names are padded to width.
func (p *printer) summaryLine(r Run, width int) {
	if !r.Held() {
		p.wrapped(p.tick(false), 5, plain(r.title())+": "+r.firstFailure())
		return
	}
	s := r.summary()
	p.line(p.tick(true), pad(plain(r.title()), width), fmt.Sprintf("  leader changes %s  availability %s  max term %s",
		count(s.LeaderChanges), percent(s.Availability), count(s.MaxTerm)))
}

// firstFailure says in one sentence what went wrong first; invariants come
// before expectations, since these mean little without them.
func (r Run) firstFailure() string {
	first, more := "", r.failures()-1
	switch {
	case len(r.History.Broken) > 0:
		first = "invariant broken: " + firstLine(r.History.Broken[0])
	case len(r.History.Problems) > 0:
		first = "problem: " + firstLine(r.History.Problems[0])
	default:
		first = r.firstUnmet()
	}
	if more > 0 {
		first += fmt.Sprintf(" (and %s more)", count(more))
	}
	return first
}

// firstUnmet is the first expectation of the file that did not hold.
func (r Run) firstUnmet() string {
	for _, v := range r.Verdicts {
		if !v.Held {
			return fmt.Sprintf("expected %s; %s: %s", v.Text, v.where(), v.Seen)
		}
	}
	return ""
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return first
}

// totals says how many runs held.
func totals(all, failed int) string {
	if failed == 0 {
		return fmt.Sprintf("%s of %s held", count(all), count(all))
	}
	return fmt.Sprintf("%s of %s held, %s failed", count(all-failed), count(all), count(failed))
}

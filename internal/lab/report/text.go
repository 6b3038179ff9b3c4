package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// TextOptions says how text is written.
type TextOptions struct {
	// Width is how many columns a line may have; 0 means 80, less than 60 is
	// taken as 60. A single word that is longer has a line for itself.
	Width int
	// Color says that the output is a terminal with color and Unicode. Nothing is
	// said by color alone.
	Color bool
}

// mostEvents bounds the list of what happened. It is for reading; JSON has all.
const mostEvents = 60

// Text writes runs for a terminal: figures, what happened, and the verdicts.
// Without color it is plain ASCII except for names. It returns the error of w.
func Text(w io.Writer, runs []verdict.Run, o TextOptions) error {
	p := newPrinter(w, o)
	about := aboutOf(runs)
	if len(runs) > 0 {
		p.heading(runs[0], about)
		p.figures(runs)
	}
	for _, r := range runs {
		if r.History.Variant != "" || len(runs) > 1 {
			p.line()
			p.line(p.paint("== "+clip(variant(r.History), p.width-6)+" ==", color.Bold))
		}
		if r.About != "" && r.About != about {
			p.wrapped("  ", 2, r.About)
		}
		p.events(r, mostEvents/len(runs))
		for _, problem := range problemsOf(r.History) {
			p.line()
			p.line(p.tick(false), p.paint(problem.Kind, color.FgRed, color.Bold))
			for l := range strings.Lines(problem.Text) {
				p.line("     ", plain(strings.TrimRight(l, "\r\n")))
			}
		}
		p.verdicts(r)
	}
	return p.close()
}

// heading says which scenario this is and what it is about.
func (p *printer) heading(r verdict.Run, about string) {
	h, voters := r.History, 0
	for _, l := range h.Lanes {
		if l.Voter {
			voters++
		}
	}
	p.line(p.paint(plain(h.Scenario), color.Bold))
	if about != "" {
		p.wrapped("  ", 2, about)
	}
	p.wrapped("  ", 2, fmt.Sprintf("%s, %s, quorum %d of %d voters",
		played(h), seconds(h.Duration), h.Quorum, voters))
}

// mostFaults bounds how many steps of the timeline a heading names.
const mostFaults = 8

// aboutOf is what is true of all runs: what the scenario teaches if that is the same of all,
// and otherwise what its timeline does.
func aboutOf(runs []verdict.Run) string {
	if len(runs) == 0 {
		return ""
	}
	marks := runs[0].History.Marks
	other := func(r verdict.Run) bool { return r.About != runs[0].About }
	if !slices.ContainsFunc(runs, other) && (runs[0].About != "" || len(marks) == 0) {
		return runs[0].About
	}
	var deeds []string
	if len(marks) == 0 {
		deeds = []string{"nothing"}
	}
	for _, m := range marks[:min(len(marks), mostFaults)] {
		deeds = append(deeds, seconds(m.At)+" "+m.Text)
	}
	if more := len(marks) - mostFaults; more > 0 {
		deeds = append(deeds, count(more)+" more")
	}
	return "What happens: " + strings.Join(deeds, "; ") + "."
}

// played is how a run was played, and with which seed if it had one.
func played(h *history.History) string {
	if h.Mode != "simulated" {
		return h.Mode
	}
	return fmt.Sprintf("%s, seed %d", h.Mode, h.Seed)
}

// events lists what happened in order of time: the first events, or those around the first
// failure if it comes later. What is beyond most is counted.
func (p *printer) events(r verdict.Run, most int) {
	all := eventsOf(r.History)
	if len(all) == 0 {
		return
	}
	p.line()
	p.line("what happened")
	first := firstShown(all, r.Verdicts, most)
	if first > 0 {
		p.line(fmt.Sprintf("  ... %s earlier; the json form has all", count(first)))
	}
	shown, at, node := all[first:min(first+most, len(all))], 0, 0
	for _, e := range shown {
		at = max(at, len(exact(e.At)))
		node = max(node, min(utf8.RuneCountInString(e.Node), 20))
	}
	for _, e := range shown {
		text, look := e.Text, []color.Attribute(nil)
		switch {
		case e.Bad:
			text, look = "!! "+text, []color.Attribute{color.FgRed, color.Bold}
		case e.Node == "":
			text, look = "* "+text, []color.Attribute{color.Bold}
		case e.to == elector.Leader:
			look = []color.Attribute{color.FgGreen, color.Bold}
		case e.from == elector.Leader:
			look = []color.Attribute{color.FgMagenta, color.Bold}
		case e.to == elector.Candidate:
			look = []color.Attribute{color.FgYellow, color.Bold}
		}
		head := "  " + padLeft(exact(e.At), at) + "  " + pad(e.Node, node) + "  "
		p.wrapped(head, utf8.RuneCountInString(head), text, look...)
	}
	if rest := len(all) - first - len(shown); rest > 0 {
		p.line(fmt.Sprintf("  ... and %s more; the json form has all", count(rest)))
	}
}

// firstShown is the index of the first event to show, of most at a time: 0 unless the
// first failure is beyond them or among their last quarter.
func firstShown(all []event, verdicts []verdict.Verdict, most int) int {
	failure := time.Duration(-1)
	for _, v := range verdicts {
		if !v.Held && (failure < 0 || v.At < failure) {
			failure = v.At
		}
	}
	after := slices.IndexFunc(all, func(e event) bool { return e.At > failure })
	if after < 0 {
		after = len(all)
	}
	if failure < 0 || after <= most*3/4 {
		return 0
	}
	return max(0, min(after-most/2, len(all)-most))
}

// verdicts writes each expectation with what was seen.
func (p *printer) verdicts(r verdict.Run) {
	if len(r.Verdicts) == 0 {
		return
	}
	p.line()
	p.line("expected")
	for _, v := range r.Verdicts {
		p.wrapped("  "+p.tick(v.Held), 7, v.Text)
		if v.Seen != "" {
			p.wrapped("       ", 7, where(v)+": "+v.Seen)
		}
	}
}

// printer writes lines of text. The first error is kept until close.
type printer struct {
	out   *bufio.Writer
	width int
	color bool
}

func newPrinter(w io.Writer, o TextOptions) *printer {
	return &printer{bufio.NewWriter(w), max(cmp.Or(o.Width, 80), 60), o.Color}
}

// close writes what is left and returns the first error.
func (p *printer) close() error { return written(p.out.Flush()) }

// written is the error of a report.
func written(err error) error {
	if err != nil {
		err = fmt.Errorf("write report: %w", err)
	}
	return err
}

// line writes one line, without spaces at its end.
func (p *printer) line(parts ...string) {
	p.out.WriteString(strings.TrimRight(strings.Join(parts, ""), " ") + "\n")
}

// wrapped writes text after a head; its other lines are indented as far.
func (p *printer) wrapped(head string, indent int, text string, look ...color.Attribute) {
	for i, l := range Wrap(plain(text), p.width-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		p.line(head, p.paint(l, look...))
	}
}

// paint colors text if the output has color.
func (p *printer) paint(s string, how ...color.Attribute) string {
	if !p.color || len(how) == 0 {
		return s
	}
	c := color.New(how...)
	c.EnableColor()
	return c.Sprint(s)
}

// tick is the mark of what held or did not, padded to five columns.
func (p *printer) tick(held bool) string {
	switch {
	case !p.color:
		return map[bool]string{true: "ok   ", false: "FAIL "}[held]
	case held:
		return p.paint("\u2713", color.FgGreen, color.Bold) + "    "
	}
	return p.paint("\u2717", color.FgRed, color.Bold) + "    "
}

// event is one line of what happened: a mark of the timeline, a transition of a node, or that
// several nodes lead.
type event struct {
	At       time.Duration
	Node     string // "" for the timeline
	Text     string
	Bad      bool         // two leaders
	from, to elector.Role // of a transition
}

// eventsOf are who leads at the beginning, marks, transitions, and the times with two leaders;
// at the same time in that order. What made the beginning is left out.
func eventsOf(h *history.History) (all []event) {
	reigns := reignsOf(h)
	bad := func(r reign) bool { return len(r.leaders) > 1 }
	all = append(all, event{Text: "the run begins: " + begins(h, reigns[0]), Bad: bad(reigns[0])})
	for _, m := range h.Marks {
		all = append(all, event{At: m.At, Text: plain(markText(m))})
	}
	for _, l := range h.Lanes {
		for _, t := range l.Transitions {
			if t.At >= 0 {
				text := plain(transitionText(t))
				all = append(all, event{t.At, plain(string(l.Node)), text, false, t.From, t.To})
			}
		}
	}
	for i := 1; i < len(reigns); i++ {
		if r := reigns[i]; bad(r) || bad(reigns[i-1]) {
			all = append(all, event{At: r.from, Text: r.String(), Bad: bad(r)})
		}
	}
	for _, v := range versionsOf(h) {
		all = append(all, event{At: v.from, Text: "committed: " + v.String()})
	}
	slices.SortStableFunc(all, event.compare)
	return all
}

func (e event) compare(other event) int { return cmp.Compare(e.At, other.At) }

// begins says who leads at first, and in which term if the algorithm has any.
func begins(h *history.History, first reign) string {
	if len(first.leaders) == 1 {
		if term := h.Lane(first.leaders[0]).At(0).Term; term > 0 {
			return fmt.Sprintf("%s in term %d", first, term)
		}
	}
	return first.String()
}

// transitionText is a transition on one line.
func transitionText(t history.Transition) string {
	text := t.From.String() + " -> " + t.To.String()
	if t.From == t.To {
		text = t.To.String()
	}
	text += " " + t.Cause()
	if t.Term > 0 {
		text += fmt.Sprintf(" term=%d", t.Term)
	}
	if t.Leader != "" && t.To != elector.Leader {
		text += " leader=" + string(t.Leader)
	}
	if t.Peer != "" && t.Peer != t.Leader {
		text += " " + roleOfPeer(t.Transition) + "=" + string(t.Peer)
	}
	return text
}

// roleOfPeer says what the other node of a transition is: of a transfer, the successor, or
// the leader that handed over.
func roleOfPeer(t elector.Transition) string {
	switch {
	case t.Reason != elector.Transferred:
		return "peer"
	case t.From == elector.Leader:
		return "to"
	}
	return "by"
}

// markText is what the timeline did, and why it had no effect.
func markText(m history.Mark) string {
	if m.Note == "" {
		return m.Text
	}
	return m.Text + " (no effect: " + m.Note + ")"
}

// where says where an expectation broke. One that is judged by its window as a whole,
// such as a count, has no such moment: then the window begins at At.
func where(v verdict.Verdict) string {
	switch {
	case v.Held:
		return "seen"
	case v.At == v.From && v.To > v.From:
		return "seen from " + seconds(v.At) + " on"
	}
	return "seen at " + seconds(v.At)
}

// problem is an invariant that broke, or what else went wrong with a run.
type problem struct{ Kind, Text string }

func problemsOf(h *history.History) []problem {
	var all []problem
	for _, text := range h.Broken {
		all = append(all, problem{"invariant broken", text})
	}
	for _, text := range h.Problems {
		all = append(all, problem{"problem with the run", text})
	}
	return all
}

// title names a run among all scenarios.
func title(h *history.History) string {
	if h.Variant == "" {
		return plain(h.Scenario)
	}
	return plain(h.Scenario + " [" + h.Variant + "]")
}

// variant names a run among those that it is compared with.
func variant(h *history.History) string { return plain(cmp.Or(h.Variant, "as written")) }

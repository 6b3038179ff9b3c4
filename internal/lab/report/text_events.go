package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// happening is one line of what happened: a mark of the timeline, or a
// transition of a node.
type happening struct {
	at   time.Duration
	node string // "" for the timeline
	text string
	look []color.Attribute
}

// events lists what happened in order of time; what is beyond most is counted.
func (p *printer) events(h *history.History, most int) {
	all := happenings(h)
	if len(all) == 0 {
		return
	}
	p.line()
	p.line("what happened")
	at, node := eventColumns(all[:min(most, len(all))])
	for _, e := range all[:min(most, len(all))] {
		head := "  " + padLeft(exact(e.at), at) + "  " + pad(e.node, node) + "  "
		p.wrapped(head, utf8.RuneCountInString(head), e.text, e.look...)
	}
	if len(all) > most {
		p.line(fmt.Sprintf("  ... and %s more; the json form has all", count(len(all)-most)))
	}
}

// eventColumns is the room that times and names need.
func eventColumns(all []happening) (at, node int) {
	for _, e := range all {
		at = max(at, len(exact(e.at)))
		node = max(node, min(utf8.RuneCountInString(e.node), 20))
	}
	return at, node
}

// happenings merges marks and transitions; at the same time the marks come first.
func happenings(h *history.History) []happening {
	var all []happening
	for _, m := range h.Marks {
		all = append(all, happening{at: m.At, text: markText(m), look: []color.Attribute{color.Bold}})
	}
	for _, l := range h.Lanes {
		for _, t := range l.Transitions {
			all = append(all, happening{at: t.At, node: plain(string(l.Node)), text: transitionText(t), look: transitionLook(t)})
		}
	}
	slices.SortStableFunc(all, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	return all
}

// transitionLook emphasizes who leads and who ceased to.
func transitionLook(t history.Transition) []color.Attribute {
	switch {
	case t.To == elector.Leader:
		return colors[leader]
	case t.From == elector.Leader:
		return colors[expired]
	case t.To == elector.Candidate:
		return colors[candidate]
	}
	return nil
}

// markText is what the timeline did, or why it had no effect.
func markText(m history.Mark) string {
	if m.Note == "" {
		return "* " + m.Text
	}
	return "* " + m.Text + " (no effect: " + m.Note + ")"
}

// transitionText says a role that stays once.
func transitionText(t history.Transition) string {
	roles := t.From.String() + " -> " + t.To.String()
	if t.From == t.To {
		roles = t.To.String()
	}
	text := fmt.Sprintf("%s %s term=%d", roles, t.Reason, t.Term)
	if t.Leader != "" && t.To != elector.Leader {
		text += " leader=" + string(t.Leader)
	}
	if t.Peer != "" && t.Peer != t.Leader {
		text += " peer=" + string(t.Peer)
	}
	return text
}

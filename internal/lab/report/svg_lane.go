package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/lsn"
)

// reigns draws who leads: what the cluster has, not what a node believes. Times
// without a leader come last and wide enough, so that they are not lost.
func (s *sheet) reigns(h *history.History) {
	s.text("node strong", margin, s.y+14, "leader")
	from := func(r history.Reign) time.Duration { return r.From }
	groups := byPixel(s, h.Reigns(0, h.Duration), from)
	for _, g := range groups {
		if last := g[len(g)-1]; last.Leader != "" {
			x, width := s.extent(last.From, last.To)
			s.reign("reign", string(last.Leader), x, width)
		}
	}
	for _, g := range groups {
		if i := slices.IndexFunc(g, func(r history.Reign) bool { return r.Leader == "" }); i >= 0 {
			x, width := s.extent(g[i].From, g[i].To)
			s.reign("noreign", "none", x, max(width, 20))
		}
	}
	s.y += laneHeight + laneGap
}

func (s *sheet) reign(class, text string, x, width int) {
	s.add(`<rect class="%s" x="%s" y="%d" width="%s" height="%d"/>`, class, tenths(x), s.y+4, tenths(width), laneHeight-8)
	s.inside(class+"name", x, width, s.y+14, text)
}

// lane draws one node.
func (s *sheet) lane(l *history.Lane, end time.Duration) {
	s.text("node", margin, s.y+14, laneName(l))
	s.add(`<g>`)
	s.stretches(pieces(l, end))
	s.terms(pieces(l, end))
	s.add(`</g>`)
	s.y += laneHeight + laneGap
}

// stretches draws the states. Of those that begin in the same pixel only the
// last is drawn, and over it the one least to be overlooked.
func (s *sheet) stretches(all []piece) {
	for _, g := range byPixel(s, stretches(all), func(p piece) time.Duration { return p.From }) {
		last := g[len(g)-1]
		s.box(last)
		greatest := slices.MaxFunc(g, func(a, b piece) int { return cmp.Compare(a.state, b.state) })
		if greatest.state > last.state {
			s.box(greatest)
		}
	}
}

// box draws one state.
func (s *sheet) box(p piece) {
	x, width := s.extent(p.From, p.To)
	look := looks[p.state]
	what := fmt.Sprintf("%s, term %d, from %s to %s", look.name, p.Term, seconds(p.From), seconds(p.To))
	s.add(`<rect class="%s" x="%s" y="%d" width="%s" height="%d"><title>%s</title></rect>`, look.class, tenths(x), s.y, tenths(width), laneHeight, what)
	if hatch := hatchOf[p.state]; hatch != "" {
		s.add(`<rect fill="url(#%s)" x="%s" y="%d" width="%s" height="%d"/>`, hatch, tenths(x), s.y, tenths(width), laneHeight)
	}
}

var hatchOf = [states]string{alone: "bmq-up", paused: "bmq-down", expired: "bmq-down"}

// terms writes the term where it changes, and wherever a leader begins.
func (s *sheet) terms(all []piece) {
	shown, free := lsn.Term(0), 0
	for _, p := range all {
		label, class := p.Term.String(), "term"
		if p.state == leader {
			label, class = "term "+label, "term on"
		}
		x, width := s.extent(p.From, p.To)
		if p.state == down || p.Term == shown && p.state != leader || x < free {
			continue
		}
		if needed := (len(label)*letterWidth + 6) * 10; needed <= width {
			s.inside(class, x, width, s.y+14, label)
			shown, free = p.Term, x+needed
		}
	}
}

// legend explains the states that occur.
func (s *sheet) legend(runs []Run) {
	occurs := occurring(runs)
	s.y += 8
	x := s.left
	for _, st := range legend {
		if !occurs[st] {
			continue
		}
		s.add(`<rect class="%s" x="%d" y="%d" width="14" height="12"/>`, looks[st].class, x, s.y)
		if hatch := hatchOf[st]; hatch != "" {
			s.add(`<rect fill="url(#%s)" x="%d" y="%d" width="14" height="12"/>`, hatch, x, s.y)
		}
		s.text("legend", x+19, s.y+10, looks[st].name)
		x += 19 + len(looks[st].name)*letterWidth + 8
	}
	s.y += 12
}

// occurring says which states any lane of the runs shows.
func occurring(runs []Run) (occurs [states]bool) {
	for _, r := range runs {
		for i := range r.History.Lanes {
			for _, p := range pieces(&r.History.Lanes[i], r.History.Duration) {
				occurs[p.state] = true
			}
		}
	}
	return occurs
}

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// run draws one run below what is there already.
func (s *sheet) run(r verdict.Run, compared bool) {
	h := r.History
	s.add(`<g class="run">`)
	if compared {
		s.y += 20
		s.text("variant", s.edge, s.y, clip(variant(h), 110), "")
		s.y += 4
	}
	s.y += 6
	if !s.page { // which has them as a table
		s.text("figures", s.edge, s.y+6, pictureFigures(r), "")
		s.y += 20
	}
	marks, rows := s.placeMarks(h.Marks, markRows)
	if s.page { // whose script takes away the rows that it does not need
		rows = min(len(h.Marks), pageRows)
	}
	axis := s.y + markHeight*rows
	height := 18 + (len(h.Lanes)+1)*(rowHeight+rowGap)
	if len(h.Cuts) > 0 {
		height += rowHeight
	}
	s.add(`<g class="axis" data-y="%d" data-height="%d" data-rows="%d">`, axis, height, rows)
	for _, t := range ticks(s.end, 10) {
		x := tenths(s.x(t))
		s.add(`<line class="grid" x1="%s" y1="%d" x2="%s" y2="%d"/>`, x, axis+18, x, axis+height)
		s.add(`<text class="tick" x="%s" y="%d">%s</text>`, x, axis+12, tickLabel(t))
	}
	s.add(`</g>`)
	bottom := axis + height - rowGap
	if s.page { // where there are many: through cuts and leaders, and not through the nodes
		bottom -= len(h.Lanes) * (rowHeight + rowGap)
	}
	s.drawMarks(marks, axis, bottom) // behind all that has a name
	s.y = axis + 18
	s.cutRow(h)
	s.leaderRow(h)
	for i := range h.Lanes {
		s.lane(&h.Lanes[i], h.Duration)
	}
	if s.page {
		s.messageRow(h)
	}
	s.add(`</g>`)
	s.y += 8
}

// pictureFigures is the run in one line.
func pictureFigures(r verdict.Run) string {
	text := played(r.History) + ": "
	sum := summarize(r.History)
	for _, f := range figuresOf(r.History) {
		if f.name == twoLeaders && sum.Overlap == 0 {
			continue // the line is full
		}
		text += f.name + " " + f.value(sum) + ", "
	}
	return text + tally(r)
}

// tally says how many expectations and invariants of a run did not hold.
func tally(r verdict.Run) string {
	switch n := r.Failures(); {
	case n > 0:
		return count(n) + " did not hold"
	case len(r.Verdicts) == 0:
		return "invariants held"
	}
	return "all held"
}

// Marks have labels above the axis, in a few rows.
const (
	markRows    = 3
	pageRows    = 4 // a page may be narrow
	markLetters = 28
	markHeight  = 12
)

// mark is a mark of the timeline with the place of its label.
type mark struct {
	history.Mark
	label    string
	row      int // from the lowest; -1 if there was no room
	from, to int // of the label
	x        int // of the line, which goes down from the label
}

// placeMarks finds places for labels, in at most so many rows, and in as few as the labels
// need that say something new. A label that repeats an earlier one gets the room that is left.
func (s *sheet) placeMarks(all []history.Mark, most int) (marks []mark, rows int) {
	marks = make([]mark, len(all))
	var first, again []*mark
	said := map[string]bool{}
	for i, m := range all {
		marks[i] = mark{Mark: m, row: -1, label: clip(plain(m.Text), markLetters), x: s.x(m.At)}
		if said[m.Text] {
			again = append(again, &marks[i])
		} else {
			first = append(first, &marks[i])
		}
		said[m.Text] = true
	}
	var labels []*mark
	for len(labels) < len(first) && rows < most {
		rows++
		labels = s.placeIn(rows, false, nil, first)
	}
	labels = s.placeIn(rows, true, labels, first)
	s.placeIn(rows, false, labels, again)
	return marks, rows
}

// placeIn adds to labels those of more for which it finds a place in n rows.
func (s *sheet) placeIn(n int, crossing bool, labels, more []*mark) []*mark {
	for _, m := range more {
		if !slices.Contains(labels, m) && s.placeMark(m, n, crossing, labels) {
			labels = append(labels, m)
		}
	}
	return labels
}

// placeMark gives a label the highest of n rows in which it meets no other label and no
// line: right of its own line, or else left of it. With crossing it may cover lines.
func (s *sheet) placeMark(m *mark, n int, crossing bool, others []*mark) bool {
	width, quarters := (utf8.RuneCountInString(m.label)*letterWidth+8)*10, []int{0, 4}
	if crossing {
		quarters = []int{0, 4, 3, 2, 1} // of the label that are left of its line
	}
	for m.row = n - 1; m.row >= 0; m.row-- {
		for _, left := range quarters {
			m.from = m.x - left*width/4
			m.to = m.from + width
			meets := func(o *mark) bool {
				return o.row == m.row && m.from < o.to && o.from < m.to ||
					!crossing && o.row > m.row && m.from < o.x && o.x < m.to ||
					!crossing && o.row < m.row && o.from < m.x && m.x < o.to
			}
			inside := m.from >= s.edge*10 && m.to <= (s.right+margin)*10
			if inside && !slices.ContainsFunc(others, meets) {
				return true
			}
		}
	}
	return false
}

// drawMarks draws a line for each mark down to bottom, from its label if that
// has found room, and otherwise from the axis. A page has all labels.
func (s *sheet) drawMarks(marks []mark, axis, bottom int) {
	s.add(`<g class="marks">`)
	covered := -1
	for _, m := range marks {
		top := axis + 16
		if m.row >= 0 {
			top = axis - 11 - markHeight*m.row
		} else if m.x <= covered && !s.page {
			continue
		}
		covered = m.x + 10*leastWidth
		s.add(`<line class="mark" x1="%[1]s" y1="%[2]d" x2="%[1]s" y2="%[3]d"%[4]s%[5]s`,
			tenths(m.x), top, bottom, s.data("t", m.At), s.tip("line", markText(m.Mark)+"\n"+seconds(m.At)))
	}
	for _, m := range marks {
		x, attributes := m.from+30, s.data("t", m.At)
		switch {
		case m.row < 0 && !s.page:
			continue
		case m.row < 0:
			attributes += ` display="none"`
		case m.to == m.x:
			x, attributes = m.x-30, attributes+` text-anchor="end"`
		}
		s.add(`<text class="marktext" x="%s" y="%d"%s>%s</text>`, tenths(x),
			axis-2-markHeight*max(m.row, 0), attributes, safe(m.label))
	}
	s.add(`</g>`)
}

// item is a time in a row.
type item struct {
	from, to          time.Duration
	class, labelClass string
	label             string // written if there is room
	rank              int    // the greatest must not be overlooked and is drawn last
	height            int
	tip, data         string
}

// row draws items, each wide enough to be seen however short it is. An item that
// the one before it of the same class covers is left out, so that the width bounds
// what a row shows however much happened. A label of class "term" is left out where
// it would repeat the one before. A page has all items and labels, hidden until
// there is room.
func (s *sheet) row(class string, top, height int, items []item) {
	s.add(`<g class="row%s">`, class)
	byRank := slices.Clone(items)
	slices.SortStableFunc(byRank, func(a, b item) int { return cmp.Compare(a.rank, b.rank) })
	covered := map[string]int{}
	for _, it := range byRank {
		x, hidden := s.x(it.from), ""
		if s.x(it.to) <= covered[it.class] {
			hidden = ` display="none"`
		} else {
			covered[it.class] = max(s.x(it.to), x+10*leastWidth)
		}
		if hidden == "" || s.page {
			s.add(`<rect class="%s" x="%s" y="%d" width="%s" height="%d"%s%s%s%s%s`,
				it.class, tenths(x), top+height-it.height, tenths(max(s.x(it.to)-x, 10*leastWidth)), it.height,
				s.data("t", it.from), s.data("to", it.to), it.data, hidden, s.tip("rect", it.tip))
		}
	}
	last := ""
	for _, it := range items {
		x, hidden := s.x(it.from), ""
		repeats := it.labelClass == "term" && it.label == last
		shown := it.label != "" && !repeats && (utf8.RuneCountInString(it.label)*letterWidth+6)*10 <= s.x(
			it.to)-x
		if shown {
			last = strings.TrimPrefix(it.label, "term ")
		} else {
			hidden = ` display="none"`
		}
		if shown || s.page && it.label != "" {
			s.add(`<text class="%s" x="%s" y="%d"%s%s%s>%s</text>`, it.labelClass, tenths(x+40),
				top+height/2+4,
				s.data("t", it.from), s.data("to", it.to), hidden, safe(it.label))
		}
	}
	s.add(`</g>`)
}

// cutRow draws when links were cut, and which.
func (s *sheet) cutRow(h *history.History) {
	if len(h.Cuts) == 0 {
		return
	}
	var items []item
	for _, b := range bands(h) {
		items = append(items, item{from: b.from, to: b.to, class: "cut", height: cutHeight,
			labelClass: "cutname", label: b.text, tip: "cut: " + b.text + "\n" + during(b.from, b.to)})
	}
	s.text("node", s.edge, s.y+11, "cuts", "")
	s.row("", s.y, cutHeight, items)
	s.y += rowHeight
}

func during(from, to time.Duration) string { return seconds(from) + " to " + seconds(to) }

// leaderRow draws who leads: what the cluster has, not what a node believes.
func (s *sheet) leaderRow(h *history.History) {
	var items []item
	for _, r := range h.Reigns(0, h.Duration) {
		it := item{from: r.From, to: r.To, class: "reign", labelClass: "reignname", height: leaderHeight,
			label: clip(plain(string(r.Leader)), nameLetters), tip: string(r.Leader)}
		if r.Leader == "" {
			it.class, it.labelClass, it.label, it.tip, it.rank = "noreign", "noreignname", "none", "nobody",
				1
		}
		it.tip += " leads\n" + during(r.From, r.To)
		items = append(items, it)
	}
	s.text("node strong", s.edge, s.y+14, "leader", "")
	s.row("", s.y+4, leaderHeight, items)
	s.y += rowHeight + rowGap
}

// lane draws one node.
func (s *sheet) lane(l *history.Lane, end time.Duration) {
	var items []item
	for _, p := range pieces(l, end) {
		s.occurs[p.state] = true
		it := item{from: p.From, to: p.To, class: looks[p.state].Class, rank: int(p.state),
			labelClass: "term", label: p.Term.String(), height: rowHeight, tip: pieceTip(l.Node, p)}
		switch p.state {
		case leader:
			it.labelClass, it.label = "term on", "term "+it.label
		case down:
			it.label = ""
		}
		if s.page {
			it.data = fmt.Sprintf(` data-term="%d" data-leader="%s"`, p.Term, safe(string(p.Leader)))
		}
		items = append(items, it)
	}
	name, tip, data := laneName(l), "", ""
	if utf8.RuneCountInString(name) > nameLetters {
		tip = name
	}
	if s.page {
		data = fmt.Sprintf(`" data-node="%s" data-y="%d`, safe(string(l.Node)), s.y+rowHeight/2)
	}
	s.text("node", s.edge, s.y+14, clip(name, nameLetters), tip)
	s.row(" lane"+data, s.y, rowHeight, items)
	s.y += rowHeight + rowGap
}

// pieceTip says all that is known of a node in a time.
func pieceTip(id history.NodeID, p piece) string {
	tip := fmt.Sprintf("%s: %s\n%s", id, looks[p.state].Name, during(p.From, p.To))
	if p.state == down {
		return tip
	}
	tip += fmt.Sprintf("\nterm %d", p.Term)
	if p.MaxTerm > p.Term {
		tip += fmt.Sprintf(", knows of %d", p.MaxTerm)
	}
	if p.state == paused {
		tip += "\nrole " + p.Role.String()
	}
	if p.Leader != "" && p.Leader != id {
		tip += "\nfollows " + string(p.Leader)
	}
	if p.LeaseUntil > 0 && p.LeaseUntil != history.Forever {
		tip += "\nlease to " + seconds(p.LeaseUntil)
	}
	return tip
}

// messageRow draws how many messages went.
func (s *sheet) messageRow(h *history.History) {
	if len(h.Sent) == 0 {
		return
	}
	most := 1
	for _, b := range h.Sent {
		most = max(most, b.Count)
	}
	var items []item
	for _, b := range h.Sent {
		tip := fmt.Sprintf("%s messages\nsent within %s from %s", count(b.Count), history.BucketSize,
			seconds(b.At))
		items = append(items, item{from: b.At, to: b.At + history.BucketSize, class: "volume",
			height: max(1, rowHeight*b.Count/most), tip: tip})
	}
	s.text("node", s.edge, s.y+14, "messages", "")
	s.row("", s.y, rowHeight, items)
	s.y += rowHeight + rowGap
}

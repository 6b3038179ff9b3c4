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
		s.text("variant", margin, s.y, clip(variant(h), 110), "")
		s.y += 4
	}
	s.y += 6
	if !s.page { // which has them as a table
		s.text("figures", margin, s.y+6, pictureFigures(r), "")
		s.y += 20
	}
	rows := min(len(h.Marks), 1)
	marks, placed := s.placeMarks(rows, h.Marks)
	for !placed && rows < markRows {
		rows++
		marks, placed = s.placeMarks(rows, h.Marks)
	}
	axis := s.y + markHeight*rows
	height := 18 + (len(h.Lanes)+1)*(rowHeight+rowGap)
	if len(h.Cuts) > 0 {
		height += rowHeight
	}
	s.add(`<g class="axis" data-y="%d" data-height="%d">`, axis, height)
	for _, t := range ticks(s.end, 10) {
		x := tenths(s.x(t))
		s.add(`<line class="grid" x1="%s" y1="%d" x2="%s" y2="%d"/>`, x, axis+18, x, axis+height)
		s.add(`<text class="tick" x="%s" y="%d">%s</text>`, x, axis+12, tickLabel(t))
	}
	s.add(`</g>`)
	s.y = axis + 18
	s.cutRow(h)
	s.leaderRow(h)
	for i := range h.Lanes {
		s.lane(&h.Lanes[i], h.Duration)
	}
	bottom := s.y - rowGap
	if s.page {
		s.messageRow(h)
	}
	s.drawMarks(marks, rows, axis, bottom)
	s.add(`</g>`)
	s.y += 8
}

// pictureFigures is the run in one line.
func pictureFigures(r verdict.Run) string {
	text := fmt.Sprintf("%s, seed %d: ", r.History.Mode, r.History.Seed)
	for _, f := range figures {
		text += f.name + " " + f.value(summarize(r.History)) + ", "
	}
	if n := r.Failures(); n > 0 {
		return text + count(n) + " did not hold"
	}
	return text + "all held"
}

// Marks have labels above the axis, in a few rows.
const (
	markRows    = 3
	markLetters = 28
	markHeight  = 12
)

// mark is a mark of the timeline with the place of its label.
type mark struct {
	history.Mark
	label     string
	row       int  // from the lowest; -1 if there was no room
	toTheLeft bool // of its line, since there is no room to the right
}

// placeMarks finds places for labels in n rows. A label takes the highest row from
// which its line, going down, meets no other label.
func (s *sheet) placeMarks(n int, all []history.Mark) (marks []mark, placed bool) {
	free := make([]int, n)
	for _, m := range all {
		it := mark{Mark: m, row: -1, label: clip(plain(m.Text), markLetters)}
		begin, width := s.x(m.At), (utf8.RuneCountInString(it.label)*letterWidth+8)*10
		end := begin + width
		if end > (s.right+margin)*10 {
			begin, end, it.toTheLeft = begin-width, begin+10, true
		}
		for it.row+1 < n && free[it.row+1] <= begin {
			it.row++
		}
		if it.row >= 0 {
			free[it.row] = end
		}
		marks = append(marks, it)
	}
	return marks, !slices.ContainsFunc(marks, func(m mark) bool { return m.row < 0 })
}

// drawMarks draws a line for each mark through all lanes, from its label if that
// has found room, and otherwise from the axis. A page has all labels, in the
// lowest row if there is no room yet.
func (s *sheet) drawMarks(marks []mark, rows, axis, bottom int) {
	for row := range max(rows, 1) {
		s.add(`<g class="row marks">`)
		covered := -1
		for _, m := range marks {
			x, y := s.x(m.At), axis-2-markHeight*row
			if max(m.row, 0) != row || m.row < 0 && x <= covered && !s.page {
				continue
			}
			covered = x + 10*leastWidth
			top, shift, attributes := y-9, 30, s.data("t", m.At)
			if m.toTheLeft {
				shift, attributes = -30, attributes+` text-anchor="end"`
			}
			if m.row < 0 {
				top, attributes = axis+16, attributes+` display="none"`
			}
			s.add(`<line class="mark" x1="%[1]s" y1="%[2]d" x2="%[1]s" y2="%[3]d"%[4]s%[5]s`,
				tenths(x), top, bottom, s.data("t", m.At), s.tip("line", markText(m.Mark)+"\n"+seconds(m.At)))
			if m.row >= 0 || s.page {
				s.add(`<text class="marktext" x="%s" y="%d"%s>%s</text>`, tenths(x+shift), y, attributes,
					safe(m.label))
			}
		}
		s.add(`</g>`)
	}
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
	s.text("node", margin, s.y+11, "cuts", "")
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
	s.text("node strong", margin, s.y+14, "leader", "")
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
	s.text("node", margin, s.y+14, clip(name, nameLetters), tip)
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
	s.text("node", margin, s.y+14, "messages", "")
	s.row("", s.y, rowHeight, items)
	s.y += rowHeight + rowGap
}

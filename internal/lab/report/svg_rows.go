package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// run draws one run below what is there already.
func (s *sheet) run(index int, r verdict.Run, compared bool) {
	h := r.History
	s.add(`<g class="run" data-run="%d" data-top="%d">`, index, s.y)
	if compared {
		s.y += 20
		s.text("variant", s.edge, s.y, clip(variant(h), 110), "")
		s.y += 4
	}
	s.y += 6
	if !s.page { // which has them as a table
		for _, line := range Wrap(pictureFigures(r), figuresLetters) {
			s.text("figures", s.edge, s.y+6, line, "")
			s.y += 14
		}
		s.y += 6
	}
	marks, rows := s.placeMarks(h.Marks)
	if s.page { // whose script takes away the rows that it does not need
		rows = min(len(h.Marks), markRows)
	}
	s.y += markHeight * rows
	height := 18 + (len(h.Lanes)+1)*(rowHeight+rowGap)
	if len(h.Cuts) > 0 {
		height += rowHeight
	}
	if len(h.Records) > 0 {
		height += rowHeight
	}
	s.add(`<g class="axis" data-y="%d" data-height="%d" data-rows="%d">`, s.y, height, rows)
	for _, t := range ticks(s.end, 10) {
		x := tenths(s.x(t))
		s.add(`<line class="grid" x1="%s" y1="%d" x2="%s" y2="%d"/>`, x, s.y+18, x, s.y+height)
		s.add(`<text class="tick" x="%s" y="%d">%s</text>`, x, s.y+12, seconds(t))
	}
	s.add(`</g>`)
	// Through cuts and leaders, behind all that has a name.
	s.drawMarks(marks, s.y+height-rowGap-len(h.Lanes)*(rowHeight+rowGap))
	s.y += 18
	s.cutRow(h)
	reigns := reignsOf(h)
	s.leaderRow(reigns)
	s.recordRow(h)
	for i := range h.Lanes {
		s.lane(h, &h.Lanes[i], reigns)
	}
	if s.page {
		s.messageRow(h)
	}
	s.add(`</g>`)
	s.y += 8
}

// hidden is the attribute of what a page shows only where it has room.
var hidden = map[bool]string{true: ` display="none"`}

// Marks have labels above the axis, in a few rows.
const (
	markRows    = 4
	markLetters = 28
	markHeight  = 12
)

// mark is a mark of the timeline with the place of its label.
type mark struct {
	history.Mark
	label string
	from  int // of the label
	row   int // from the lowest; -1 if there was no room
}

// placeMarks gives labels places in as few rows as they need, in the highest one that is free,
// so that none covers another or a line of its row. The page's script does the same for the
// part of the time that is on screen.
func (s *sheet) placeMarks(all []history.Mark) (marks []mark, rows int) {
	for placed := 0; placed < len(all) && rows < markRows; rows++ {
		marks, placed = nil, 0
		free := make([]int, rows+1)
		for _, at := range all {
			m := mark{at, clip(plain(at.Text), markLetters), 0, rows}
			width := (utf8.RuneCountInString(m.label)*letterWidth + 8) * 10
			for ; m.row >= 0; m.row-- {
				m.from = min(s.x(m.At), (s.right+margin)*10-width) // right of its line, or else left
				if m.from < free[m.row] {
					m.from = s.x(m.At) - width
				}
				if m.from >= free[m.row] {
					break
				}
			}
			if m.row >= 0 {
				free[m.row] = m.from + width
				placed++
			}
			marks = append(marks, m)
		}
	}
	return marks, rows
}

// drawMarks draws a line for each mark down to bottom, from its label if that has found room,
// and otherwise from the axis, at y. A page has all lines and labels.
func (s *sheet) drawMarks(marks []mark, bottom int) {
	s.add(`<g class="marks">`)
	covered := -1
	for _, m := range marks {
		x, top := s.x(m.At), s.y+16
		if m.row >= 0 {
			top = s.y - 11 - markHeight*m.row
		}
		if m.row >= 0 || x > covered || s.page {
			s.add(`<line class="mark" x1="%[1]s" y1="%[2]d" x2="%[1]s" y2="%[3]d"%[4]s%[5]s`, tenths(x),
				top, bottom, s.data("t", m.At), s.tip("line", markText(m.Mark)+"\n"+seconds(m.At)))
			covered = x + 10*leastWidth
		}
	}
	for _, m := range marks {
		if m.row >= 0 || s.page {
			s.add(`<text class="marktext" x="%s" y="%d"%s%s>%s</text>`, tenths(m.from+30),
				s.y-2-markHeight*max(m.row, 0), s.data("t", m.At), hidden[m.row < 0], safe(m.label))
		}
	}
	s.add(`</g>`)
}

// item is a time in a row.
type item struct {
	from, to          time.Duration
	class, labelClass string
	label             string // written where there is room, and once for items side by side
	rank              int    // the greatest must not be overlooked and is drawn last
	height            int
	tip, data         string
}

// row draws items, each wide enough to be seen however short it is. An item that
// the one before it of the same class covers is left out, so that the width bounds
// what a row shows however much happened. A page has all items and labels, hidden until
// there is room.
func (s *sheet) row(class string, height int, items []item) {
	s.add(`<g class="row%s">`, class)
	byRank := slices.Clone(items)
	slices.SortStableFunc(byRank, func(a, b item) int { return cmp.Compare(a.rank, b.rank) })
	covered := map[string]int{}
	for _, it := range byRank {
		x, shown := s.x(it.from), s.x(it.to) > covered[it.class]
		if shown {
			covered[it.class] = max(s.x(it.to), x+10*leastWidth)
		}
		if shown || s.page {
			s.add(`<rect class="%s" x="%s" y="%d" width="%s" height="%d"%s%s%s%s%s`,
				it.class, tenths(x), s.y+height-it.height, tenths(max(s.x(it.to)-x, 10*leastWidth)), it.height,
				s.data("t", it.from), s.data("to", it.to), it.data, hidden[!shown], s.tip("rect", it.tip))
		}
	}
	for i, next := 0, 0; i < len(items); i = next {
		it := items[i]
		for next = i + 1; next < len(items) && items[next].label == it.label &&
			items[next].labelClass == it.labelClass && items[next].from == it.to; next++ {
			it.to = items[next].to
		}
		shown := (utf8.RuneCountInString(it.label)*letterWidth+6)*10 <= s.x(it.to)-s.x(it.from)
		if it.label != "" && (shown || s.page) {
			s.add(`<text class="%s" x="%s" y="%d"%s%s%s>%s</text>`, it.labelClass,
				tenths(s.x(it.from)+40), s.y+height/2+4, s.data("t", it.from), s.data("to", it.to),
				hidden[!shown], safe(it.label))
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
	s.row("", cutHeight, items)
	s.y += rowHeight
}

func during(from, to time.Duration) string { return seconds(from) + " to " + seconds(to) }

// leaderRow draws who leads: what the cluster has, and where several nodes hold themselves for
// the leader, all of them.
func (s *sheet) leaderRow(reigns []reign) {
	var items []item
	for _, r := range reigns {
		it := item{from: r.from, to: r.to, class: "reign", rank: len(r.leaders), height: leaderHeight,
			label: r.String(), labelClass: "on", tip: r.String() + "\n" + during(r.from, r.to)}
		switch len(r.leaders) {
		case 0:
			it.class, it.label, it.rank = "nobody", "none", 2
		case 1:
			it.label = clip(plain(string(r.leaders[0])), nameLetters)
		default:
			it.class, it.labelClass, it.rank = "rival", "on split", 3
		}
		items = append(items, it)
	}
	s.text("node strong", s.edge, s.y+14, "leader", "")
	s.y += 4
	s.row(" reigns", leaderHeight, items)
	s.y += rowHeight + rowGap - 4
}

// recordRow draws the newest record that any node knows to be committed, and its voters.
func (s *sheet) recordRow(h *history.History) {
	if len(h.Records) == 0 {
		return
	}
	var items []item
	for i, v := range versionsOf(h) {
		it := item{from: v.from, to: v.to, class: "record", height: cutHeight, label: v.label(),
			labelClass: "recordname", tip: v.String() + "\n" + during(v.from, v.to)}
		if i%2 == 1 { // so that two side by side are told apart
			it.class = "record other"
		}
		items = append(items, it)
	}
	s.text("node", s.edge, s.y+11, "record", "")
	s.row("", cutHeight, items)
	s.y += rowHeight
}

// lane draws one node.
func (s *sheet) lane(h *history.History, l *history.Lane, reigns []reign) {
	var items []item
	for _, p := range pieces(l, reigns, h.Duration) {
		s.occurs[p.state] = true
		it := item{from: p.From, to: p.To, class: looks[p.state].Class, rank: int(p.state),
			labelClass: "term", height: rowHeight, tip: pieceTip(l.Node, p)}
		switch {
		case p.state == down, p.Term == 0: // the algorithm may have none
		case p.state == leader:
			it.labelClass, it.label = "term on", "term "+p.Term.String()
		case p.state == rival:
			it.labelClass, it.label = "term on split", "term "+p.Term.String()
		default:
			it.label = p.Term.String()
		}
		if !p.Shown.IsZero() && p.state != down {
			it.label += ", record " + p.Shown.String()
		}
		if v := h.Record(p.Accepted).Voters; len(v) > 0 && !slices.Contains(v, l.Node) {
			it.height = leaderHeight
			it.tip += ", does not vote"
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
	s.row(" lane"+data, rowHeight, items)
	s.y += rowHeight + rowGap
}

// pieceTip says all that is known of a node in a time.
func pieceTip(id history.NodeID, p piece) string {
	tip := fmt.Sprintf("%s: %s\n%s", id, looks[p.state].Name, during(p.From, p.To))
	if p.state == down {
		return tip
	}
	if p.state == rival {
		tip += "\n" + p.among.String()
	}
	if p.MaxTerm > 0 {
		tip += fmt.Sprintf("\nterm %d", p.Term)
	}
	if p.MaxTerm > p.Term {
		tip += fmt.Sprintf(", knows of %d", p.MaxTerm)
	}
	if p.Process == history.Paused {
		tip += "\npaused, role " + p.Role.String()
	}
	if !p.Accepted.IsZero() {
		tip += "\nhas record " + p.Accepted.String()
	}
	if !p.Shown.IsZero() {
		tip += ", shows " + p.Shown.String()
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
	fewer := func(a, b history.Bucket) int { return cmp.Compare(a.Count, b.Count) }
	most := max(1, slices.MaxFunc(h.Sent, fewer).Count)
	var items []item
	for _, b := range h.Sent {
		tip := fmt.Sprintf("%s messages\nsent within %s from %s", count(b.Count), history.BucketSize,
			seconds(b.At))
		items = append(items, item{from: b.At, to: b.At + history.BucketSize, class: "volume",
			height: max(1, rowHeight*b.Count/most), tip: tip})
	}
	s.text("node", s.edge, s.y+14, "messages", "")
	s.row("", rowHeight, items)
	s.y += rowHeight + rowGap
}

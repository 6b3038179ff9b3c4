package report

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// run draws one run below what is there already.
func (s *sheet) run(r Run, compared bool) {
	h := r.History
	if compared {
		s.y += 20
		s.text("variant", margin, s.y, r.variant())
	}
	s.y += 6
	s.text("figures", margin, s.y+6, pictureFigures(r))
	s.y += 20
	rows := placeMarks(s, h.Marks)
	s.y += 12 * len(rows)
	top := s.y
	s.markLabels(rows, top)
	s.axis(top, laneTop(h))
	s.cutBands(h)
	s.reigns(h)
	for i := range h.Lanes {
		s.lane(&h.Lanes[i], h.Duration)
	}
	s.markLines(h.Marks, top, s.y)
	s.y += 8
}

// laneTop is the height of all that the ticks of the axis cross.
func laneTop(h *history.History) int {
	height := 18 + (len(h.Lanes)+1)*(laneHeight+laneGap)
	if len(h.Cuts) > 0 {
		height += laneHeight
	}
	return height
}

// pictureFigures is the run in one line.
func pictureFigures(r Run) string {
	sum := r.summary()
	text := fmt.Sprintf("%s, seed %d. Leader changes %s, needless demotions %s, without leader %s, availability %s, highest term %s, messages %s.",
		r.History.Mode, r.History.Seed, count(sum.LeaderChanges), count(sum.Demotions), seconds(sum.Leaderless),
		percent(sum.Availability), count(sum.MaxTerm), count(sum.Messages))
	switch n := r.failures(); n {
	case 0:
		return text + " All held."
	default:
		return text + fmt.Sprintf(" %s did not hold.", count(n))
	}
}

// axis draws the time and the lines that help to read it.
func (s *sheet) axis(top, height int) {
	for _, t := range ticks(s.end, 10) {
		x := tenths(s.x(t))
		s.add(`<path class="grid" d="M%s %dv%d"/>`, x, top+4, height)
		s.add(`<text class="tick" x="%s" y="%d">%s</text>`, x, top+12, tickLabel(t))
	}
	s.y = top + 18
}

// cutBands draws when links were cut, and which where there is room.
func (s *sheet) cutBands(h *history.History) {
	if len(h.Cuts) == 0 {
		return
	}
	s.text("node", margin, s.y+11, "cuts")
	for _, g := range byPixel(s, bands(h), func(b band) time.Duration { return b.from }) {
		first, last := g[0], g[len(g)-1]
		text := last.describe(h.Lanes)
		x, width := s.extent(first.from, last.to)
		s.add(`<g><title>%s</title><rect class="cut" x="%s" y="%d" width="%s" height="14"/>`,
			safe(fmt.Sprintf("cut from %s to %s: %s", seconds(first.from), seconds(last.to), text)), tenths(x), s.y, tenths(width))
		s.inside("cutname", x, width, s.y+11, text)
		s.add(`</g>`)
	}
	s.y += laneHeight
}

// extent is the place of a time, wide enough to be seen however short it is.
func (s *sheet) extent(from, to time.Duration) (x, width int) {
	x = s.x(from)
	return x, max(s.x(to)-x, 8)
}

// inside writes text into a box if there is room.
func (s *sheet) inside(class string, x, width, y int, text string) {
	if text != "" && (utf8.RuneCountInString(text)*letterWidth+6)*10 <= width {
		s.add(`<text class="%s" x="%s" y="%d">%s</text>`, class, tenths(x+40), y, safe(text))
	}
}

// markRows bounds the rows of labels above a run.
const markRows = 3

// placedMark is a label with its place.
type placedMark struct {
	x    int // tenths
	text string
}

// placeMarks puts labels into as few rows as hold them all, or into as many as
// there may be. What finds no room is left to its line, which tells it on
// hovering.
func placeMarks(s *sheet, marks []history.Mark) [][]placedMark {
	if len(marks) == 0 {
		return nil
	}
	for n := 1; ; n++ {
		if rows, all := s.placeIn(n, marks); all || n == markRows {
			return rows
		}
	}
}

// placeIn tries n rows, the first of which is the lowest. A label takes the
// highest row from which its flag, going down, meets no other label.
func (s *sheet) placeIn(n int, marks []history.Mark) (rows [][]placedMark, all bool) {
	rows, all = make([][]placedMark, n), true
	free := make([]int, n)
	for _, m := range marks {
		text := clip(plain(m.Text), 28)
		x, width := s.x(m.At), (utf8.RuneCountInString(text)*letterWidth+8)*10
		row := -1
		for row+1 < n && free[row+1] <= x {
			row++
		}
		if row < 0 {
			all = false
			continue
		}
		rows[row] = append(rows[row], placedMark{x, text})
		free[row] = x + width
	}
	return rows, all
}

// markLabels writes the rows upward from the axis.
func (s *sheet) markLabels(rows [][]placedMark, axis int) {
	for i, row := range rows {
		y := axis - 2 - 12*i
		for _, m := range row {
			s.add(`<path class="flag" d="M%s %dV%d"/>`, tenths(m.x), y-9, axis+2)
			s.add(`<text class="mark" x="%s" y="%d">%s</text>`, tenths(m.x+30), y, safe(m.text))
		}
	}
}

// markLines draws each mark through the lanes.
func (s *sheet) markLines(marks []history.Mark, top, bottom int) {
	for _, g := range byPixel(s, marks, func(m history.Mark) time.Duration { return m.At }) {
		text := seconds(g[0].At) + " " + markText(g[0])
		if len(g) > 1 {
			text += fmt.Sprintf(" and %s more", count(len(g)-1))
		}
		s.add(`<path class="markline" d="M%s %dV%d"><title>%s</title></path>`, tenths(s.x(g[0].At)), top+16, bottom-laneGap, safe(text))
	}
}

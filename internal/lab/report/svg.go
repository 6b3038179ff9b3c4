package report

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// pictureStyle holds the colors of the picture, for light and dark.
//
//go:embed picture.css
var pictureStyle string

// hatches are patterns that tell states apart where color does not.
//
//go:embed hatches.svg
var hatches string

// Sizes of the picture in pixels.
const (
	pictureWidth = 960
	margin       = 16
	letterWidth  = 7 // at most, of the small font that labels use
	nameLetters  = 24
	// figuresLetters are what a line of figures has room for, in a small font.
	figuresLetters = 155
	rowHeight      = 20
	rowGap         = 5
	leaderHeight   = rowHeight - 8
	cutHeight      = 14
	leastWidth     = 2 // of what has a time, to be seen however short it is
)

// sheet is a picture being drawn from top to bottom.
type sheet struct {
	body        strings.Builder
	y           int // where the next thing goes
	edge        int // where names begin
	left, right int // edges of the lanes
	end         time.Duration
	occurs      [states]bool
	page        bool // drawn for a page, whose script moves all that has a time
}

// newSheet begins a picture in which all runs share one axis of time. Names begin at edge.
func newSheet(runs []verdict.Run, edge int) *sheet {
	s := &sheet{edge: edge, right: pictureWidth - margin, end: 1, page: edge == 0}
	letters := len("messages")
	for _, r := range runs {
		s.end = max(s.end, r.History.Duration)
		for i := range r.History.Lanes {
			letters = max(letters, utf8.RuneCountInString(laneName(&r.History.Lanes[i])))
		}
	}
	s.left = s.edge + min(letters, nameLetters)*letterWidth + 12
	return s
}

// SVG writes runs as one picture, one below the other. The picture follows the
// reader's preference of light or dark and needs nothing from outside. It
// returns the error of w.
func SVG(w io.Writer, runs []verdict.Run) error {
	s := newSheet(runs, margin)
	title, about := describeRuns(runs)
	s.text("title", margin, 28, clip(plain(title), 96), "")
	s.y = 44
	for i, r := range runs {
		s.run(i, r, len(runs) > 1)
	}
	s.y += 8
	x := s.left
	for _, look := range s.legend() {
		s.add(`<rect class="%s" x="%d" y="%d" width="14" height="12"/>`, look.Class, x, s.y)
		s.text("legend", x+19, s.y+10, look.Name, "")
		x += 19 + len(look.Name)*letterWidth + 8
	}
	s.y += 12
	_, err := w.Write(s.picture(pictureWidth, title, about))
	return written(err)
}

// pictureFigures is the run in one line, which has room for two leaders only where there are.
func pictureFigures(r verdict.Run) string {
	text := played(r.History) + ": "
	for i, row := range tableOf([]verdict.Run{r}) {
		if i > 0 || row.Cells[0].Worst {
			text += row.Name + " " + row.Cells[0].Text + ", "
		}
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

// legend are the states that any lane shows, in the order in which they are
// explained.
func (s *sheet) legend() []look {
	var known []look
	for _, st := range []state{leader, rival, expired, candidate, follower, alone, paused, down} {
		if s.occurs[st] {
			known = append(known, looks[st])
		}
	}
	return known
}

// picture is what was drawn.
func (s *sheet) picture(width int, title, about string) []byte {
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" `+
		`width="%[1]d" height="%[2]d" role="img" class="bmq">
<title>%[3]s</title>
<desc>%[4]s</desc>
<style>
%[5]s</style>
%[6]s<rect class="paper" width="%[1]d" height="%[2]d"/>
%[7]s</svg>
`, width, s.y+margin, safe(title), safe(about), pictureStyle, hatches, s.body.String())
}

// mostReigns bounds how many leaderships a description lists one by one.
const mostReigns = 12

// describeRuns is what a picture shows: in short, and for those who cannot see it.
func describeRuns(runs []verdict.Run) (title, about string) {
	if len(runs) == 0 {
		return "nothing was run", ""
	}
	for _, r := range runs {
		before := " "
		if len(runs) > 1 {
			before += variant(r.History) + ": "
		}
		reigns := reignsOf(r.History)
		for _, reign := range reigns[:min(len(reigns), mostReigns)] {
			about += before + reign.String() + " from " + during(reign.from, reign.to)
			before = "; "
		}
		if more := len(reigns) - mostReigns; more > 0 {
			about += "; and " + count(more) + " more"
		}
		about += "."
	}
	return runs[0].History.Scenario, about[1:]
}

// x is the place of a moment in tenths of a pixel; moments outside are at the
// edges. Whole numbers give the same picture on every machine.
func (s *sheet) x(t time.Duration) int {
	t = min(max(t, 0), s.end)
	width := int64(s.right-s.left) * 10
	return s.left*10 + int(t.Microseconds()*width/max(s.end.Microseconds(), 1))
}

// add writes a line of the picture. Arguments that are foreign text go through safe.
func (s *sheet) add(format string, args ...any) { fmt.Fprintf(&s.body, format+"\n", args...) }

// text writes foreign text at a place that does not move; the tip may be empty.
func (s *sheet) text(class string, x, y int, text, tip string) {
	if tip != "" {
		tip = "<title>" + safe(tip) + "</title>"
	}
	s.add(`<text class="%s" x="%d" y="%d">%s%s</text>`, class, x, y, safe(text), tip)
}

// tip is what an element says on hovering: a title, or an attribute for the script
// of a page. The element ends with it.
func (s *sheet) tip(tag, tip string) string {
	if s.page {
		return fmt.Sprintf(` data-tip="%s"/>`, safe(tip))
	}
	return fmt.Sprintf(`><title>%s</title></%s>`, safe(tip), tag)
}

// data is an attribute with a time in seconds, for the script of a page.
func (s *sheet) data(name string, t time.Duration) string {
	if !s.page {
		return ""
	}
	at := strconv.FormatFloat(float64(t.Microseconds())/1e6, 'f', -1, 64)
	return fmt.Sprintf(` data-%s="%s"`, name, at)
}

// safe escapes foreign text for XML, where control characters are not even
// allowed as entities. Only the ends of lines stay.
func safe(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = html.EscapeString(plain(l))
	}
	return strings.Join(lines, "\n")
}

// tenths writes tenths of a pixel.
func tenths(v int) string { return strconv.FormatFloat(float64(v)/10, 'f', -1, 64) }

package report

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// pictureStyle holds the colors of the picture, for light and dark.
//
//go:embed picture.css
var pictureStyle string

// Sizes of the picture in pixels.
const (
	pictureWidth = 960
	margin       = 16
	letterWidth  = 7 // at most, of the small font that labels use
	laneHeight   = 20
	laneGap      = 5
)

// sheet is a picture being drawn from top to bottom.
type sheet struct {
	body        strings.Builder
	y           int // where the next thing goes
	left, right int // edges of the lanes
	end         time.Duration
}

// SVG writes runs as one picture, one below the other. The picture follows the
// reader's preference of light or dark and needs nothing from outside. It
// returns the error of w.
func SVG(w io.Writer, runs []Run) error {
	s := &sheet{left: margin, right: pictureWidth - margin, end: max(longest(runs), 1)}
	s.left += s.labels(runs)
	title, about := pictureTitle(runs)
	s.text("title", margin, 28, title)
	s.y = 44
	for _, r := range runs {
		s.run(r, len(runs) > 1)
	}
	s.legend(runs)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" class="bmq">
<title>%[3]s</title>
<desc>%[4]s</desc>
<style>
%[5]s</style>
%[6]s<rect class="paper" width="%[1]d" height="%[2]d"/>
%[7]s</svg>
`, pictureWidth, s.y+margin, safe(title), safe(about), pictureStyle, hatches, s.body.String())
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// hatches tell states apart where color does not.
const hatches = `<defs>
<pattern id="bmq-up" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="1.5" height="6"/></pattern>
<pattern id="bmq-down" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect class="hatch" width="1.5" height="5"/></pattern>
</defs>
`

// pictureTitle is what the picture shows, in short and for who cannot see it.
func pictureTitle(runs []Run) (title, about string) {
	if len(runs) == 0 {
		return "nothing was run", ""
	}
	var words []string
	for _, r := range runs {
		words = append(words, r.variant()+": "+r.story())
	}
	if len(runs) == 1 {
		words = []string{runs[0].story()}
	}
	return runs[0].History.Scenario, strings.Join(words, " ")
}

// toldReigns bounds how many leaderships a description tells one by one.
const toldReigns = 12

// story tells who led when.
func (r Run) story() string {
	var words []string
	reigns := r.History.Reigns(0, r.History.Duration)
	for _, reign := range reigns[:min(len(reigns), toldReigns)] {
		who := string(reign.Leader) + " leads"
		if reign.Leader == "" {
			who = "nobody leads"
		}
		words = append(words, fmt.Sprintf("%s from %s to %s", who, seconds(reign.From), seconds(reign.To)))
	}
	if more := len(reigns) - toldReigns; more > 0 {
		words = append(words, fmt.Sprintf("and %s more", count(more)))
	}
	return strings.Join(words, ", ") + "."
}

// labels is the room for the names of nodes, bounded.
func (s *sheet) labels(runs []Run) int {
	longest := len("leader")
	for _, r := range runs {
		for i := range r.History.Lanes {
			longest = max(longest, utf8.RuneCountInString(laneName(&r.History.Lanes[i])))
		}
	}
	return min(longest, 24)*letterWidth + 12
}

// x is the place of a moment in tenths of a pixel; moments outside are at the
// edges. Whole numbers give the same picture on every machine.
func (s *sheet) x(t time.Duration) int {
	t = min(max(t, 0), s.end)
	width := int64(s.right-s.left) * 10
	return s.left*10 + int(t.Microseconds()*width/max(s.end.Microseconds(), 1))
}

// byPixel groups what begins in the same pixel, so that a picture's size is
// bounded by its width however much happened.
func byPixel[T any](s *sheet, all []T, at func(T) time.Duration) [][]T {
	var groups [][]T
	for _, item := range all {
		n := len(groups)
		if n > 0 && s.x(at(groups[n-1][0]))/10 == s.x(at(item))/10 {
			groups[n-1] = append(groups[n-1], item)
			continue
		}
		groups = append(groups, []T{item})
	}
	return groups
}

// add writes a line of the picture. Arguments that are foreign text go through safe.
func (s *sheet) add(format string, args ...any) { fmt.Fprintf(&s.body, format+"\n", args...) }

// text writes foreign text.
func (s *sheet) text(class string, x, y int, text string) {
	s.add(`<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, safe(text))
}

// safe escapes foreign text for XML, where control characters are not even
// allowed as entities.
func safe(text string) string { return html.EscapeString(plain(text)) }

// tenths writes tenths of a pixel.
func tenths(v int) string {
	if v%10 == 0 {
		return fmt.Sprint(v / 10)
	}
	return fmt.Sprintf("%d.%d", v/10, v%10)
}

package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

//go:embed web
var web embed.FS

// mostPageEvents bounds the list of what happened on the page.
const mostPageEvents = 3_000

// page is what the template of the page is filled with.
type page struct {
	Title, About string
	First        *history.History // nil if nothing was run
	Badge        string           // what the runs show, in a few words
	Look         string           // of the badge: compared, held or failed
	Policy       string
	Style        template.CSS
	Script       template.JS
	Lanes        template.HTML
	Data         template.HTML // JSON Lines, whose encoder escapes all that HTML knows
	Legend       []look
	Figures      [][]string // a name and a value for each run
	Runs         []pageRun
}

// pageRun is what the page writes of a run.
type pageRun struct {
	verdict.Run
	Variant  string // "" for the only one
	Problems []problem
	Events   []event
	More     int // events that are left out
	Gaps     []gap
}

// gap is what the page does not have any more from some moment on.
type gap struct {
	What string
	From time.Duration
}

// bound leaves events out that are too many, and notes what the page does not have.
func (r *pageRun) bound() {
	r.More = max(len(r.Events)-mostPageEvents, 0)
	r.Events = r.Events[:len(r.Events)-r.More]
	if arrows := r.History.Arrows; len(arrows) == history.MaxArrows {
		r.Gaps = append(r.Gaps, gap{"messages", arrows[len(arrows)-1].Sent})
	}
	if r.More > 0 {
		r.Gaps = append(r.Gaps, gap{"events", r.Events[len(r.Events)-1].At})
	}
}

// pageWords are the functions of the template.
var pageWords = template.FuncMap{
	"plain": plain, "seconds": seconds, "where": where, "played": played,
	"tally":  func(r pageRun) string { return tally(r.Run) },
	"name":   func(l history.Lane) string { return laneName(&l) },
	"node":   func(l history.Lane) string { return plain(string(l.Node)) },
	"number": func(t time.Duration) float64 { return t.Seconds() },
	"column": func(t time.Duration) string { return strings.TrimSuffix(exact(t), "s") },
}

var badgeLooks = map[bool]string{true: "held", false: "failed"}

// HTML writes runs as one page to explore in a browser: lanes to zoom, messages,
// links at any moment. The page fetches nothing, and a policy in it forbids that
// and any script but its own. It returns the error of w.
func HTML(w io.Writer, runs []verdict.Run) error {
	p := page{Badge: count(len(runs)) + " variants compared", Look: "compared"}
	if len(runs) == 1 {
		p.Badge, p.Look = tally(runs[0]), badgeLooks[runs[0].Held()]
	}
	return writePage(w, p, runs)
}

// Incident writes such a page of what was recorded, with its replay below. Of all leaderships,
// differ are not the same in both. It returns the error of w.
func Incident(w io.Writer, recorded, replayed verdict.Run, differ, all int) error {
	badge := fmt.Sprintf("the replay differs in %s of %s leaderships", count(differ), count(all))
	p := page{Badge: badge, Look: badgeLooks[differ == 0]}
	return writePage(w, p, []verdict.Run{recorded, replayed})
}

func writePage(w io.Writer, p page, runs []verdict.Run) error {
	style, err := texts("web/page.css", "web/stage.css")
	if err != nil {
		return err
	}
	script, err := texts("web/stage.js", "web/page.js")
	if err != nil {
		return err
	}
	style = pictureStyle + style
	var data bytes.Buffer
	if err := pageData(&data, runs); err != nil {
		return err
	}
	s := newSheet(runs, true)
	for _, r := range runs {
		s.run(r, len(runs) > 1)
	}
	title, about := describeRuns(runs)
	p.Title, p.Legend, p.Lanes = plain(title), s.legend(), s.lanes(about)
	p.Data = template.HTML(data.String())
	p.Style, p.Script = template.CSS(style), template.JS(script)
	p.Policy = fmt.Sprintf("default-src 'none'; img-src data:; style-src '%s'; script-src '%s'",
		digest(style), digest(script))
	for i, r := range runs {
		if i == 0 {
			p.First, p.About = r.History, plain(r.About)
		}
		run := pageRun{Run: r, Problems: problemsOf(r.History), Events: eventsOf(r.History)}
		if len(runs) > 1 {
			run.Variant = variant(r.History)
		}
		run.bound()
		p.Runs = append(p.Runs, run)
	}
	for _, f := range figuresOf(p.First) {
		row := []string{f.name}
		for _, r := range runs {
			row = append(row, f.value(summarize(r.History)))
		}
		p.Figures = append(p.Figures, row)
	}
	shape, err := template.New("page.html").Funcs(pageWords).ParseFS(web, "web/page.html")
	if err == nil {
		err = shape.Execute(w, p)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// texts are files of the page, one after the other.
func texts(names ...string) (string, error) {
	all := ""
	for _, name := range names {
		text, err := web.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("write report: %w", err)
		}
		all += string(text)
	}
	return all, nil
}

// digest is how a policy names the one text that it allows.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// lanes is the picture as a part of the page.
func (s *sheet) lanes(about string) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg class="bmq" id="lanes" role="img" aria-label="%s" viewBox="0 0 %d %d" data-left="%d"%s>
%s%s</svg>`, safe(about), pictureWidth, s.y, s.left, s.data("end", s.end), hatches, s.body.String()))
}

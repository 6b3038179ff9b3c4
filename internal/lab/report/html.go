package report

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

//go:embed web
var web embed.FS

// mostPageEvents bounds the list of what happened on the page.
const mostPageEvents = 3_000

// pageRun is what the page writes of a run.
type pageRun struct {
	verdict.Run
	Variant  string // "" for the only one
	Problems []problem
	Events   []event
	More     int // events that are left out
}

// pageEvents are the first events, and where the page has no messages any more.
func pageEvents(h *history.History) (events []event, more int) {
	events = eventsOf(h)
	if n := len(h.Arrows); n == history.MaxArrows {
		events = append(events,
			event{At: h.Arrows[n-1].Sent, Text: "messages are not recorded from here on"})
		slices.SortStableFunc(events, event.compare)
	}
	shown := min(len(events), mostPageEvents)
	return events[:shown], len(events) - shown
}

// pageWords are the functions of the template.
var pageWords = template.FuncMap{
	"plain": plain, "where": where, "played": played, "seconds": seconds,
	"tally":  func(r pageRun) string { return tally(r.Run) },
	"picks":  func() []string { return []string{"Show", "and"} },
	"number": func(t time.Duration) float64 { return t.Seconds() },
	"column": func(t time.Duration) string { return strings.TrimSuffix(exact(t), "s") },
}

var badgeLooks = map[bool]string{true: "held", false: "failed"}

// HTML writes runs as one page to explore in a browser: lanes to zoom, messages,
// links at any moment. The page fetches nothing, and a policy in it forbids that
// and any script but its own. It returns the error of w.
func HTML(w io.Writer, runs []verdict.Run) error {
	if len(runs) == 1 {
		return writePage(w, tally(runs[0]), badgeLooks[runs[0].Held()], runs)
	}
	return writePage(w, count(len(runs))+" variants compared", "compared", runs)
}

// Incident writes such a page of what was recorded, with its replay below. Of all leaderships,
// differ are not the same in both. It returns the error of w.
func Incident(w io.Writer, recorded, replayed verdict.Run, differ, all int) error {
	badge := fmt.Sprintf("the replay differs in %s of %s leaderships", count(differ), count(all))
	return writePage(w, badge, badgeLooks[differ == 0], []verdict.Run{recorded, replayed})
}

// writePage writes runs, what they show in a few words, and the look of these words.
func writePage(w io.Writer, badge, look string, runs []verdict.Run) error {
	data, failed := packed(runs)
	style, script, s := pictureStyle, "", newSheet(runs, 0)
	for _, name := range []string{"page.css", "stage.css", "stage.js", "page.js"} {
		text, err := web.ReadFile("web/" + name)
		failed = errors.Join(failed, err)
		if strings.HasSuffix(name, ".css") {
			style += string(text)
		} else {
			script += string(text)
		}
	}
	var all []pageRun
	for i, r := range runs {
		s.run(i, r, len(runs) > 1)
		run := pageRun{Run: r, Problems: problemsOf(r.History)}
		run.Events, run.More = pageEvents(r.History)
		if len(runs) > 1 {
			run.Variant = variant(r.History)
		}
		all = append(all, run)
	}
	title, about := describeRuns(runs)
	shape, err := template.New("page.html").Funcs(pageWords).ParseFS(web, "web/page.html")
	if failed = errors.Join(failed, err); failed == nil {
		failed = shape.Execute(w, map[string]any{
			"Title": plain(title), "About": plain(aboutOf(runs)), "Badge": badge, "Look": look,
			"Runs": all, "Figures": tableOf(runs), "Lanes": s.lanes(about), "Legend": s.legend(),
			"Style": template.CSS(style), "Script": template.JS(script), "Data": data,
			"Policy": fmt.Sprintf("default-src 'none'; img-src data:; style-src '%s'; script-src '%s'",
				digest(style), digest(script)),
		})
	}
	return written(failed)
}

// packed are the JSON Lines of runs, compressed: messages repeat themselves.
func packed(runs []verdict.Run) (template.HTML, error) {
	var data bytes.Buffer
	to := gzip.NewWriter(&data)
	err := errors.Join(JSON(to, runs), to.Close())
	return template.HTML(base64.StdEncoding.EncodeToString(data.Bytes())), err
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

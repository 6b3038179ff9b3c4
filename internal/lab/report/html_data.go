package report

import (
	"math"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// The data of the page. Terms are strings: JavaScript has no numbers for all of
// them. Times are seconds; nil is a time that never comes.
type (
	webData struct {
		States []webState `json:"states"`
		Legend []int      `json:"legend"` // states
		Kinds  []string   `json:"kinds"`
		Bucket float64    `json:"bucket"`
		Runs   []webRun   `json:"runs"`
	}
	webState struct {
		Class   string `json:"class"`
		Letter  string `json:"letter"`
		Name    string `json:"name"`
		Hatched bool   `json:"hatched"`
	}
	webRun struct {
		Scenario string       `json:"scenario"`
		Variant  string       `json:"variant"`
		About    string       `json:"about"`
		Mode     string       `json:"mode"`
		Seed     string       `json:"seed"`
		Duration float64      `json:"duration"`
		Quorum   int          `json:"quorum"`
		Failures int          `json:"failures"`
		Figures  [][2]string  `json:"figures"`
		Nodes    []webNode    `json:"nodes"`
		Cuts     []webCut     `json:"cuts"`
		Bands    []webBand    `json:"bands"`
		Reigns   []webReign   `json:"reigns"`
		Marks    []webMark    `json:"marks"`
		Events   []webEvent   `json:"events"`
		Arrows   []any        `json:"arrows"`
		Sent     [][2]float64 `json:"sent"`
		Verdicts []webVerdict `json:"verdicts"`
		Problems []webProblem `json:"problems"`
	}
	webNode struct {
		Name  string    `json:"name"`
		Label string    `json:"label"`
		Spans []webSpan `json:"spans"`
	}
	webSpan struct {
		From   float64  `json:"from"`
		To     float64  `json:"to"`
		State  state    `json:"state"`
		Role   string   `json:"role"`
		Paused bool     `json:"paused"`
		Term   string   `json:"term"`
		Max    string   `json:"max"`
		Leader string   `json:"leader"`
		Lease  *float64 `json:"lease"`
	}
	webCut struct {
		Source int      `json:"source"`
		Target int      `json:"target"`
		From   float64  `json:"from"`
		To     *float64 `json:"to"`
	}
	webBand struct {
		From float64 `json:"from"`
		To   float64 `json:"to"`
		Text string  `json:"text"`
	}
	webReign struct {
		From   float64 `json:"from"`
		To     float64 `json:"to"`
		Leader string  `json:"leader"`
	}
	webMark struct {
		At   float64 `json:"at"`
		Text string  `json:"text"`
		Note string  `json:"note"`
	}
	webEvent struct {
		At   float64 `json:"at"`
		Node string  `json:"node"`
		Text string  `json:"text"`
	}
	webVerdict struct {
		Held  bool    `json:"held"`
		Text  string  `json:"text"`
		Seen  string  `json:"seen"`
		Where string  `json:"where"`
		At    float64 `json:"at"`
	}
	webProblem struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	}
)

// micro is a time in seconds, to the microsecond.
func micro(t time.Duration) float64 { return math.Round(t.Seconds()*1e6) / 1e6 }

// microOrNil is nil for history.Forever.
func microOrNil(t time.Duration) *float64 {
	if t == history.Forever {
		return nil
	}
	s := micro(t)
	return &s
}

// webSpans are the pieces of a lane.
func webSpans(l *history.Lane, end time.Duration) []webSpan {
	spans := []webSpan{}
	for _, p := range pieces(l, end) {
		s := webSpan{
			From: micro(p.From), To: micro(p.To), State: p.state, Role: p.Role.String(), Paused: p.Process == history.Paused,
			Term: p.Term.String(), Max: max(p.MaxTerm, p.Term).String(), Leader: plain(string(p.Leader)),
		}
		if p.LeaseUntil > 0 {
			s.Lease = microOrNil(p.LeaseUntil)
		}
		spans = append(spans, s)
	}
	return spans
}

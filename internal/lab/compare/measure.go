package compare

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// Figures are what one run cost, from the moment of the fault to the end of the run.
type Figures struct {
	history.Summary
	Measured time.Duration // from the fault to the end
	// Recovery is the part of Leaderless before the fault was repaired.
	Recovery time.Duration
	// FirstKnows and LastKnows are the times from a crash until the first and the last
	// survivor named a survivor that led, at most until the repair. 0 without a crash.
	FirstKnows, LastKnows time.Duration
	Bytes                 float64 // of all messages, by their mean size
}

// Fault is what was done to a run, for whoever measures it.
type Fault struct {
	From, To time.Duration // when it began, and when it was repaired
	Crashed  history.NodeID
}

// Measure computes the figures of a run.
func Measure(h *history.History, f Fault) Figures {
	fig := Figures{Summary: h.Summarize(f.From, h.Duration), Measured: h.Duration - f.From}
	for _, r := range h.Reigns(f.From, f.To) {
		if r.Leader == "" {
			fig.Recovery += r.To - r.From
		}
	}
	if f.Crashed != "" {
		fig.FirstKnows, fig.LastKnows = knowing(h, f)
	}
	return fig
}

// knowing finds when the survivors of a crash first named one of them that led.
func knowing(h *history.History, f Fault) (first, last time.Duration) {
	moments := append(h.Moments(f.From, f.To), f.To) // whoever did not until then counts as then
	first = f.To - f.From
	for i := range h.Lanes {
		l := &h.Lanes[i]
		k := slices.IndexFunc(moments, func(t time.Duration) bool {
			named := l.At(t).Leader
			return t == f.To || named != f.Crashed && slices.Contains(h.ClaimantsAt(t), named)
		})
		if l.Node != f.Crashed {
			first, last = min(first, moments[k]-f.From), max(last, moments[k]-f.From)
		}
	}
	return first, last
}

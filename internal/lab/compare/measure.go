package compare

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// Figures are what one run cost, from the moment of the fault to the end of the run.
type Figures struct {
	Measured time.Duration // from the fault to the end
	// Leaderless is the time in which no node led by its own belief while a quorum of
	// voters, itself included, named it.
	Leaderless time.Duration
	// Recovery is the part of Leaderless before the fault was repaired.
	Recovery time.Duration
	// Overlap is the time in which two nodes or more led by their own belief.
	Overlap time.Duration
	// Demotions are the leaders that lost their leadership without need: for the horizon
	// before, they ran and reached a quorum, itself included, both ways.
	Demotions int
	// Elections are the leaderships that began, by the leader's own belief.
	Elections int
	Messages  int // that were sent, one per receiver
	// FirstKnows and LastKnows are the times from a crash until the first and the last
	// survivor named a survivor that led, at most until the repair. 0 without a crash.
	FirstKnows, LastKnows time.Duration
}

// Fault is what was done to a run, for whoever measures it.
type Fault struct {
	From, To time.Duration // when it began, and when it was repaired
	Crashed  history.NodeID
}

// Measure computes the figures of a run. A demotion is without need if its leader was well
// for the horizon before it.
func Measure(h *history.History, f Fault, horizon time.Duration) Figures {
	fig := Figures{
		Measured: h.Duration - f.From, Messages: h.MessagesIn(f.From, h.Duration),
		Overlap:    h.Overlap(f.From, h.Duration),
		Leaderless: leaderless(h, f.From, h.Duration), Recovery: leaderless(h, f.From, f.To),
		Demotions: needless(h, f.From, horizon), Elections: elections(h, f.From),
	}
	if f.Crashed != "" {
		fig.FirstKnows, fig.LastKnows = knowing(h, f)
	}
	return fig
}

func leaderless(h *history.History, from, to time.Duration) (sum time.Duration) {
	for _, r := range h.Reigns(from, to) {
		if r.Leader == "" {
			sum += r.To - r.From
		}
	}
	return sum
}

// elections counts how often a node began to believe that it leads.
func elections(h *history.History, from time.Duration) (n int) {
	for i := range h.Lanes {
		was := false
		for _, s := range h.Lanes[i].Spans {
			is := s.Process != history.Down && s.Role == elector.Leader
			if is && !was && s.From >= from {
				n++
			}
			was = is
		}
	}
	return n
}

// needless counts the leaders that were deposed although they were well: the leader that a
// quorum named last does not believe any more that it leads, or a quorum names another one
// that does.
func needless(h *history.History, from, horizon time.Duration) (n int) {
	last := history.NodeID("")
	for _, t := range h.Moments(0, h.Duration) {
		leader := h.LeaderAt(t)
		deposed := last != "" && (leader != last && leader != "" ||
			!slices.Contains(h.ClaimantsAt(t), last))
		if deposed {
			if t > from && wasWell(h, last, t-horizon, t) {
				n++
			}
			last = ""
		}
		if leader != "" {
			last = leader
		}
	}
	return n
}

// wasWell reports whether a node ran from one moment to another, and reached a quorum that
// did, both ways.
func wasWell(h *history.History, id history.NodeID, from, to time.Duration) bool {
	quorum := 0
	for i := range h.Lanes {
		l := &h.Lanes[i]
		apart := slices.ContainsFunc(h.Cuts, func(c history.Cut) bool {
			between := c.From == id && c.To == l.Node || c.From == l.Node && c.To == id
			return between && c.Start < to && c.End > from
		})
		if ran(l, from, to) && !apart && l.Voter {
			quorum++
		} else if l.Node == id {
			return false
		}
	}
	return quorum >= h.Quorum
}

func ran(l *history.Lane, from, to time.Duration) bool {
	return !slices.ContainsFunc(l.Spans, func(s history.Span) bool {
		return s.Process != history.Up && s.From <= to && s.To > from
	})
}

// knowing finds when the survivors of a crash first named one of them that led.
func knowing(h *history.History, f Fault) (first, last time.Duration) {
	unaware := map[history.NodeID]bool{}
	for i := range h.Lanes {
		unaware[h.Lanes[i].Node] = h.Lanes[i].Node != f.Crashed
	}
	first, last = f.To-f.From, 0
	for _, t := range h.Moments(f.From, f.To) {
		claim := h.ClaimantsAt(t)
		for i := range h.Lanes {
			l := &h.Lanes[i]
			named := l.At(t).Leader
			if unaware[l.Node] && named != f.Crashed && slices.Contains(claim, named) {
				unaware[l.Node] = false
				first, last = min(first, t-f.From), max(last, t-f.From)
			}
		}
	}
	for i := range h.Lanes {
		if unaware[h.Lanes[i].Node] {
			last = f.To - f.From
		}
	}
	return first, last
}

package incident

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

const (
	// settled is how long after the first election the scenario may begin.
	settled = time.Second
	// quiet is how much of the time before the first event, and after the last, is kept.
	quiet = 10 * time.Second
)

// chooseWindow finds the part of the time asked for that is worth a scenario: it begins
// under the first leader, shortly before the first event, and ends after the last one.
func (in *Incident) chooseWindow() error {
	slices.SortStableFunc(in.all, func(a, b Step) int { return a.At.Compare(b.At) })
	from, to := in.From, in.To
	var seen []recording.Leadership
	for _, s := range in.sources {
		seen = append(seen, recording.Leaderships(s.Records)...)
	}
	led := within(recording.Merge(in.Group, seen), from, to)
	if len(led) == 0 {
		return errors.New("nobody led in that time, so there is nothing to begin with; " +
			"choose a longer time")
	}
	if first := led[0].From.Add(settled); first.After(from) {
		from = first
		in.doubt("what happened before %s led is left out", led[0].Leader)
	}
	events := []time.Time{led[0].To}
	for _, s := range in.all {
		events = append(events, s.At)
	}
	for _, l := range led[1:] {
		events = append(events, l.From)
	}
	first, last := to, from
	for _, at := range events {
		if at.After(from) && !at.After(to) {
			first, last = earlier(first, at), later(last, at)
		}
	}
	in.Start = later(from, first.Add(-quiet))
	in.End = earlier(to, last.Add(quiet))
	if !in.End.After(in.Start) {
		in.End = in.Start.Add(quiet)
	}
	in.Led = within(led, in.Start, in.End)
	in.Steps = in.legal()
	return nil
}

// within are the leaderships that a window has a part of.
func within(all []recording.Leadership, from, to time.Time) []recording.Leadership {
	return slices.DeleteFunc(all, func(l recording.Leadership) bool {
		return l.From.After(to) || !l.To.IsZero() && l.To.Before(from)
	})
}

// state is what the steps so far have made of the nodes and links.
type state struct {
	process map[string]scenario.Process
	unfit   map[string]bool // applications that cannot lead
	cut     map[scenario.Pair]bool
}

// legal are the steps of the window as the format allows them. What was so at its beginning
// is done at time 0. A step that does not fit is left out, and is a doubt.
func (in *Incident) legal() (steps []Step) {
	now := state{map[string]scenario.Process{}, map[string]bool{}, map[scenario.Pair]bool{}}
	for _, n := range in.nodes {
		now.process[n] = scenario.Down
		if len(in.lives[n]) > 0 && !in.lives[n][0].started {
			now.process[n] = scenario.Running
		}
	}
	begun := false
	for _, s := range append(in.all, Step{At: forever}) {
		if !begun && s.At.After(in.Start) {
			begun, steps = true, in.initial(&now)
		}
		if s.At.After(in.End) {
			break
		}
		fits := now.take(&s)
		switch {
		case begun && fits:
			steps = append(steps, s)
		case begun:
			in.doubt("%s at %s does not fit what was before: left out", s.Do, s.At.Format(clockTime))
		}
	}
	return steps
}

// take does a step; false if it makes no sense, or nothing is left of it.
func (now *state) take(s *Step) bool {
	for _, n := range s.Nodes {
		next, ok := now.process[n].After(s.Do)
		if !ok {
			return false
		}
		now.process[n] = next
	}
	switch s.Do {
	case "unfit", "fit":
		was := now.unfit[s.Nodes[0]]
		now.unfit[s.Nodes[0]] = s.Do == "unfit"
		return was != now.unfit[s.Nodes[0]]
	case "restart":
		delete(now.unfit, s.Nodes[0])
	case "cut":
		for _, p := range s.Pairs {
			now.cut[p] = true
		}
	case "heal":
		s.Pairs = slices.DeleteFunc(slices.Clone(s.Pairs), func(p scenario.Pair) bool {
			cut := now.cut[p]
			delete(now.cut, p)
			return !cut
		})
		return len(s.Pairs) > 0
	}
	return true
}

// initial are the steps at time 0. Nodes that do not run then are absent.
func (in *Incident) initial(now *state) (steps []Step) {
	at := func(do, why string, pairs []scenario.Pair, nodes ...string) {
		steps = append(steps, Step{At: in.Start, Do: do, Pairs: pairs, Nodes: nodes,
			Why: why + " since before"})
	}
	for _, n := range in.nodes {
		in.absent[n] = now.process[n] == scenario.Down
		if now.process[n] == scenario.Paused {
			at("pause", n+" was paused", nil, n)
		}
		if now.unfit[n] {
			at("unfit", "its application cannot lead", nil, n)
		}
	}
	pairs := slices.SortedFunc(maps.Keys(now.cut), func(a, b scenario.Pair) int {
		return cmp.Compare(a.String(), b.String())
	})
	if len(pairs) > 0 {
		at("cut", "they heard nothing", pairs)
	}
	return steps
}

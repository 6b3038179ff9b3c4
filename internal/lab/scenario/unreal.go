package scenario

import (
	"slices"
	"strings"
)

// unreal says what of the scenario real processes on a real network cannot be
// made to do; "" if nothing.
func (s *Scenario) unreal() string {
	var why []string
	for _, c := range []struct {
		found bool
		what  string
	}{
		{s.anyLink(func(l Link) bool { return l.Duplicate > 0 }), "duplicate messages"},
		{s.anyLink(func(l Link) bool { return l.Reorder > 0 }), "reorder messages"},
		{s.anyNode(func(n Node) bool { return n.ClockRatePPM != 0 }), "run clocks at different rates"},
		{s.anyNode(func(n Node) bool { return n.Term != 0 }), "start with a term on disk"},
		{s.Election.Takeover != 0, "take over by priority"},
		{s.anyFitness(), "be unfit"},
		{s.anyCrash(func(c Crash) bool { return c.Lose || c.Keep }), "choose what a crash leaves of an unfinished write"},
	} {
		if c.found {
			why = append(why, c.what)
		}
	}
	if why == nil {
		return ""
	}
	return "real processes cannot be made to " + strings.Join(why, ", nor to ")
}

func (s *Scenario) anyLink(is func(Link) bool) bool {
	found := is(s.Network)
	for _, step := range s.Timeline {
		set, ok := step.Action.(SetLink)
		found = found || ok && is(set.Link)
	}
	return found
}

func (s *Scenario) anyNode(is func(Node) bool) bool {
	for _, n := range s.Nodes {
		if is(n) {
			return true
		}
	}
	return false
}

func (s *Scenario) anyFitness() bool {
	return slices.ContainsFunc(s.Timeline, func(step Step) bool {
		_, is := step.Action.(Fitness)
		return is
	})
}

func (s *Scenario) anyCrash(is func(Crash) bool) bool {
	for _, step := range s.Timeline {
		if c, ok := step.Action.(Crash); ok && is(c) {
			return true
		}
	}
	return false
}

package scenario

import (
	"slices"
	"time"
)

// process is what a node's process is doing.
type process uint8

const (
	runs process = iota
	paused
	down
)

// life is a process's state and when it got there.
type life struct {
	process process
	since   time.Duration
}

// describe says why an action is out of place.
func (l life) describe() string {
	if l.since < 0 {
		return "is absent at first"
	}
	return [...]string{"has run since ", "has been paused since ", "has been down since "}[l.process] + span(l.since)
}

// lives follows the nodes' processes along the timeline.
type lives struct {
	b    *builder
	of   map[NodeID]life
	told map[tale]bool // what was reported; a repetition is reported once
}

// tale is a step of the file and a node that it does not fit.
type tale struct {
	pos  Pos
	node NodeID
}

// sequence reports actions that make no sense where they stand.
func (b *builder) sequence() {
	l := lives{b, map[NodeID]life{}, map[tale]bool{}}
	for _, n := range b.s.Nodes {
		if n.Absent {
			l.of[n.ID] = life{down, -1}
		}
	}
	for _, s := range b.s.Timeline {
		l.step(s)
	}
}

func (l lives) step(s Step) {
	switch a := s.Action.(type) {
	case Crash:
		l.each(s, a.Nodes, down, "restart it first", runs, paused)
	case Stop:
		l.each(s, a.Nodes, down, "a process stops that runs and is not paused", runs)
	case Restart:
		l.each(s, a.Nodes, runs, "crash or stop it first", down)
	case Pause:
		l.each(s, a.Nodes, paused, "a process pauses that runs", runs)
	case Resume:
		l.each(s, a.Nodes, runs, "only a paused process goes on", paused)
	case StepDown:
		l.hear(s, a.Nodes)
	case Fitness:
		l.hear(s, a.Nodes)
	}
}

// hear reports nodes that cannot be told anything.
func (l lives) hear(s Step, ids []NodeID) {
	for _, id := range ids {
		l.fits(s, id, "only a process that runs and is not paused can be told", runs)
	}
}

// each moves nodes to a state; from are the states in which that makes sense.
func (l lives) each(s Step, ids []NodeID, to process, right string, from ...process) {
	for _, id := range ids {
		if l.fits(s, id, right, from...) {
			l.of[id] = life{to, s.At}
		}
	}
}

// fits reports whether a node is in one of the states in which a step makes sense.
func (l lives) fits(s Step, id NodeID, right string, in ...process) bool {
	now := l.of[id]
	fits := slices.Contains(in, now.process)
	if t := (tale{s.Pos, id}); !fits && !l.told[t] {
		l.told[t] = true
		l.b.at(&value{pos: s.Pos}, "%s: at %s %s %s: %s", s.Text, span(s.At), id, now.describe(), right)
	}
	return fits
}

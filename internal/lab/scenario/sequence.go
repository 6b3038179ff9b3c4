package scenario

import (
	"slices"
	"time"
)

// process is what a node's process is doing.
type process string

const (
	running process = "has run"
	paused  process = "has been paused"
	down    process = "has been down"
)

// commands are what can be done to a process: in which states that makes sense, the
// state after it, "" for the same, and what would be right in any other.
var commands = map[string]struct {
	from  []process
	to    process
	right string
}{
	"crash":     {[]process{running, paused}, down, "restart it first"},
	"stop":      {[]process{running}, down, "a process stops that runs and is not paused"},
	"restart":   {[]process{down}, running, "crash or stop it first"},
	"pause":     {[]process{running}, paused, "a process pauses that runs"},
	"resume":    {[]process{paused}, running, "only a paused process goes on"},
	"step-down": {[]process{running}, "", mustHear},
	"unfit":     {[]process{running}, "", mustHear},
	"fit":       {[]process{running}, "", mustHear},
}

const mustHear = "only a process that runs and is not paused can be told"

// sequence reports actions that make no sense where they stand. A step of a
// repetition is reported once for each node.
func (b *builder) sequence() {
	type state struct {
		process process
		since   time.Duration
	}
	type misfit struct {
		pos  Pos
		node NodeID
	}
	nodes, reported := map[NodeID]state{}, map[misfit]bool{}
	for _, n := range b.s.Nodes {
		nodes[n.ID] = state{running, 0}
		if n.Absent {
			nodes[n.ID] = state{down, -1}
		}
	}
	for _, s := range b.s.Timeline {
		command := commands[s.Action.Do]
		for _, id := range s.Action.Nodes {
			now := nodes[id]
			if slices.Contains(command.from, now.process) {
				if command.to != "" {
					nodes[id] = state{command.to, s.At}
				}
				continue
			}
			is := string(now.process) + " since " + span(now.since)
			if now.since < 0 {
				is = "is absent at first"
			}
			if m := (misfit{s.Pos, id}); !reported[m] {
				reported[m] = true
				b.at(place{pos: s.Pos}, "%s: at %s %s %s: %s", s.Text, span(s.At), id, is, command.right)
			}
		}
	}
}

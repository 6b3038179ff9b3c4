package scenario

import (
	"cmp"
	"slices"
	"time"
)

// maxSteps bounds a timeline whose repetitions are written out.
const maxSteps = 100_000

// stepKeys are the keys of a step of the timeline.
type stepKeys struct {
	At     scalar
	Repeat mapping[repeatKeys]
	Action actionKeys `yaml:",inline"`
}

type repeatKeys struct {
	Every, Until scalar
	Do           []mapping[roundKeys]
}

// roundKeys are the keys of a step that is repeated.
type roundKeys struct {
	After  scalar
	Action actionKeys `yaml:",inline"`
}

// timeline reads the steps, writes repetitions out, and checks the sequence.
func (b *builder) timeline(steps []mapping[stepKeys]) {
	before, line := time.Duration(0), 0
	for _, step := range steps {
		k, at := step.keys, before
		if !k.At.there() {
			b.at(step.place, "a step has no time: add at, as in at: 10s")
		}
		if read(b, k.At, &at, parseDuration) {
			if at < before {
				b.at(k.At.place, "%s is before %s of the step on line %d: a timeline goes forward",
					span(at), span(before), line)
			}
			b.notAfterEnd(k.At.place, at)
			before, line = max(at, before), step.pos.Line
		}
		switch {
		case !k.Repeat.there():
			if action, text, ok := b.action(&k.Action, step.place); ok {
				b.s.Timeline = append(b.s.Timeline, Step{at, step.pos, text, action})
			}
		case given(&k.Action, actionNames()) != nil:
			b.at(step.place, "repeat stands alone in its step: put the other action into do")
		default:
			b.repeat(k.Repeat, step.place, at)
		}
	}
	slices.SortStableFunc(b.s.Timeline, func(x, y Step) int { return cmp.Compare(x.At, y.At) })
	b.sequence()
}

func (b *builder) notAfterEnd(at place, t time.Duration) bool {
	if b.s.Duration == 0 || t <= b.s.Duration {
		return true
	}
	b.at(at, "%s is after the end: duration is %s", span(t), span(b.s.Duration))
	return false
}

// repeat reads {every, until, do} and writes the rounds out. They begin at the
// step's time, and every so often before until. Without until they go on as long
// as a whole round fits before the end.
func (b *builder) repeat(m mapping[repeatKeys], step place, at time.Duration) {
	k, every := m.keys, time.Duration(0)
	const example = "write it as in {every: 5s, until: 60s, do: " +
		"[{cut: [a-b]}, {after: 1s, heal: all}]}"
	if !k.Every.there() {
		b.at(m.place, "repeat has no every: %s", example)
	}
	if len(k.Do) == 0 {
		b.at(m.place, "repeat has no steps to do: %s", example)
	}
	steps, length := b.round(k.Do)
	until := b.s.Duration - length + 1
	if k.Until.there() {
		switch {
		case !read(b, k.Until, &until, parseDuration):
			return
		case until <= at:
			b.at(k.Until.place, "until is %s, but must be after the start of the first round, %s",
				span(until), span(at))
			return
		case !b.notAfterEnd(k.Until.place, until):
			return
		}
	}
	if !read(b, k.Every, &every, parsePositive) || b.s.Duration == 0 || len(steps) == 0 {
		return
	}
	switch count := int64((until - at + every - 1) / every); {
	case count <= 0:
		b.at(step, "no round fits before the end: one lasts %s, and duration is %s",
			span(length), span(b.s.Duration))
		return
	case count > int64((maxSteps-len(b.s.Timeline))/len(steps)):
		b.at(step, "%d rounds are too many: "+
			"a timeline has at most %d steps with its repetitions written out", count, maxSteps)
		return
	}
	for ; at < until; at += every {
		if at+length > b.s.Duration {
			b.at(step, "the round at %s would last until %s, after the end: duration is %s; "+
				"let until be earlier", span(at), span(at+length), span(b.s.Duration))
			return
		}
		for _, s := range steps {
			s.At += at
			b.s.Timeline = append(b.s.Timeline, s)
		}
	}
}

// round reads the steps of one round, whose times count from its start, and returns
// how long it lasts.
func (b *builder) round(do []mapping[roundKeys]) (steps []Step, length time.Duration) {
	for _, m := range do {
		after := time.Duration(0)
		if m.keys.After.there() && !read(b, m.keys.After, &after, parseDuration) {
			after = length
		}
		if after < length {
			b.at(m.place, "%s after the start of the round is before the step above, at %s: "+
				"a timeline goes forward", span(after), span(length))
		}
		length = max(length, after)
		if action, text, ok := b.action(&m.keys.Action, m.place); ok {
			steps = append(steps, Step{after, m.pos, text, action})
		}
	}
	return steps, length
}

// Process is what a node's process is doing.
type Process string

// What a process can be doing, in words that "since" follows.
const (
	Running Process = "has run"
	Paused  Process = "has been paused"
	Down    Process = "has been down"
)

// After returns what a process is doing after the action with that word of the format; ok is
// false if the action makes no sense.
func (p Process) After(do string) (next Process, ok bool) {
	return cmp.Or(commands[do].to, p), slices.Contains(commands[do].from, p)
}

// commands are what can be done to a process: in which states that makes sense, the
// state after it, "" for the same, and what would be right in any other.
var commands = map[string]struct {
	from  []Process
	to    Process
	right string
}{
	"crash":     {[]Process{Running, Paused}, Down, "restart it first"},
	"stop":      {[]Process{Running}, Down, "a process stops that runs and is not paused"},
	"restart":   {[]Process{Down}, Running, "crash or stop it first"},
	"pause":     {[]Process{Running}, Paused, "a process pauses that runs"},
	"resume":    {[]Process{Paused}, Running, "only a paused process goes on"},
	"step-down": {[]Process{Running}, "", mustHear},
	"unfit":     {[]Process{Running}, "", mustHear},
	"fit":       {[]Process{Running}, "", mustHear},
}

const mustHear = "only a process that runs and is not paused can be told"

// sequence reports actions that make no sense where they stand. A step of a
// repetition is reported once for each node.
func (b *builder) sequence() {
	type state struct {
		process Process
		since   time.Duration
	}
	type misfit struct {
		pos  Pos
		node NodeID
	}
	nodes, reported := map[NodeID]state{}, map[misfit]bool{}
	for _, n := range b.s.Nodes {
		nodes[n.ID] = state{Running, 0}
		if n.Absent {
			nodes[n.ID] = state{Down, -1}
		}
	}
	for _, s := range b.s.Timeline {
		for _, id := range s.Action.Nodes {
			now := nodes[id]
			if next, ok := now.process.After(s.Action.Do); ok {
				if next != now.process {
					nodes[id] = state{next, s.At}
				}
				continue
			}
			is := string(now.process) + " since " + span(now.since)
			if now.since < 0 {
				is = "is absent at first"
			}
			if m := (misfit{s.Pos, id}); !reported[m] {
				reported[m] = true
				b.at(place{pos: s.Pos}, "%s: at %s %s %s: %s", s.Text, span(s.At), id, is,
					commands[s.Action.Do].right)
			}
		}
	}
}

package scenario

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// maxSteps bounds a timeline whose repetitions are written out.
const maxSteps = 100_000

// timeline reads the steps, writes repetitions out, and checks the sequence.
func (b *builder) timeline(o object) {
	v := o.get("timeline")
	if v == nil {
		return
	}
	if v.kind != list || len(v.items) == 0 {
		b.at(v, "timeline is a list of steps, as in [{at: 10s, cut: [a-b]}]; leave it out if nothing happens")
		return
	}
	before := clock{}
	for _, item := range v.items {
		before = b.entry(item, before)
	}
	slices.SortStableFunc(b.s.Timeline, func(x, y Step) int { return cmp.Compare(x.At, y.At) })
	b.sequence()
}

// clock is how far reading has come.
type clock struct {
	time time.Duration
	line int // of the step; 0 before the first
}

// entry reads one item of the timeline and returns the time that the next must
// not be before.
func (b *builder) entry(v *value, before clock) clock {
	o := b.object(v, "a step", append(stepKeys("at"), "repeat")...)
	at := before.time
	if !o.has("at") {
		o.incomplete("a step has no time: add at, as in at: 10s")
	}
	if o.duration("at", &at) {
		b.inOrder(o.get("at"), at, before)
		before = clock{max(at, before.time), v.pos.Line}
	}
	if o.has("repeat") {
		b.repeat(o, at)
	} else if action, text := b.action(o); action != nil {
		b.add(Step{At: at, Pos: v.pos, Text: text, Action: action})
	}
	return before
}

func (b *builder) inOrder(v *value, at time.Duration, before clock) {
	if at < before.time {
		b.at(v, "%s is before %s of the step on line %d: a timeline goes forward", span(at), span(before.time), before.line)
	}
	if b.s.Duration > 0 && at > b.s.Duration {
		b.at(v, "%s is after the end: duration is %s", span(at), span(b.s.Duration))
	}
}

func (b *builder) add(s Step) { b.s.Timeline = append(b.s.Timeline, s) }

// stepKeys are the keys of a step whose time has that key.
func stepKeys(time string) []string {
	keys := []string{time}
	for _, a := range actions {
		keys = append(keys, a.key)
	}
	return append(keys, hows...)
}

// action reads the one action of a step; nil if it was reported.
func (b *builder) action(o object) (Action, string) {
	done, found := -1, []string{}
	for i, a := range actions {
		if o.has(a.key) {
			done, found = i, append(found, a.key)
		}
	}
	switch {
	case len(found) == 0:
		o.incomplete("a step does nothing: add one of %s", strings.Join(stepKeys("")[1:len(actions)+1], ", "))
		return nil, ""
	case len(found) > 1:
		b.at(o.value, "a step does one thing, this one does %s: make it %d steps", strings.Join(found, " and "), len(found))
		return nil, ""
	}
	a := actions[done]
	for _, how := range hows {
		if o.has(how) && how != a.how {
			b.at(o.key(how), "%s does not go with %s", how, a.key)
		}
	}
	return a.read(b, o, o.get(a.key))
}

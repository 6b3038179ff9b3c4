package scenario

import (
	"slices"
	"time"
)

// round is what a repetition does again and again.
type round struct {
	every, length time.Duration
	steps         []Step // At counts from the start of the round
}

// repeat reads {every, until, do} and writes the rounds out. They begin at the
// step's time, and every so often before until. Without until they go on as long
// as a whole round fits before the end.
func (b *builder) repeat(step object, at time.Duration) {
	if slices.ContainsFunc(step.fields, func(f field) bool { return f.key.text != "at" && f.key.text != "repeat" }) {
		b.at(step.value, "repeat stands alone in its step: put the other action into do")
		return
	}
	o := b.object(step.get("repeat"), "repeat", "every", "until", "do")
	var r round
	for _, required := range []string{"every", "do"} {
		if !o.has(required) {
			o.incomplete("repeat has no %s: write it as in {every: 5s, until: 60s, do: [{cut: [a-b]}, {after: 1s, heal: all}]}", required)
		}
	}
	known := o.positive("every", &r.every)
	if v := o.get("do"); v != nil {
		b.round(v, &r)
	}
	if until, ok := b.until(o, at, r.length); ok && known && len(r.steps) > 0 {
		b.rounds(step, r, at, until)
	}
}

// round reads the steps of one round.
func (b *builder) round(v *value, r *round) {
	if v.kind != list || len(v.items) == 0 {
		b.at(v, "do is a list of steps, as in [{cut: [a-b]}, {after: 1s, heal: all}]")
		return
	}
	for _, item := range v.items {
		o, after := b.object(item, "a repeated step", stepKeys("after")...), r.length
		o.duration("after", &after)
		if !o.has("after") {
			after = 0
		}
		if after < r.length {
			o.incomplete("%s after the start of the round is before the step above, at %s: a timeline goes forward", span(after), span(r.length))
		}
		r.length = max(r.length, after)
		if action, text := b.action(o); action != nil {
			r.steps = append(r.steps, Step{At: after, Pos: item.pos, Text: text, Action: action})
		}
	}
}

// until returns the time before which rounds begin.
func (b *builder) until(o object, at, length time.Duration) (until time.Duration, ok bool) {
	end := b.s.Duration
	if !o.has("until") {
		return end - length + 1, end > 0
	}
	if !o.duration("until", &until) {
		return 0, false
	}
	switch v := o.get("until"); {
	case until <= at:
		b.at(v, "until is %s, but must be after the start of the first round, %s", span(until), span(at))
	case end > 0 && until > end:
		b.at(v, "%s is after the end: duration is %s", span(until), span(end))
	default:
		return until, end > 0
	}
	return 0, false
}

// rounds writes the rounds out.
func (b *builder) rounds(step object, r round, at, until time.Duration) {
	switch count := int64((until - at + r.every - 1) / r.every); {
	case count <= 0:
		b.at(step.value, "no round fits before the end: one lasts %s, and duration is %s", span(r.length), span(b.s.Duration))
		return
	case count > int64((maxSteps-len(b.s.Timeline))/len(r.steps)):
		b.at(step.value, "%d rounds are too many: a timeline has at most %d steps with its repetitions written out", count, maxSteps)
		return
	}
	for ; at < until; at += r.every {
		if at+r.length > b.s.Duration {
			b.at(step.value, "the round at %s would last until %s, after the end: duration is %s; let until be earlier",
				span(at), span(at+r.length), span(b.s.Duration))
			return
		}
		for _, s := range r.steps {
			s.At += at
			b.add(s)
		}
	}
}

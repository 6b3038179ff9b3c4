package scenario

import "fmt"

// window reads when an expectation must hold: at a moment, or from and to, which
// are the start and the end of the run if left out.
func (b *builder) window(o object, e *Expectation, moment bool) {
	e.To = b.s.Duration
	if !o.has("at") {
		o.duration("from", &e.From)
		o.duration("to", &e.To)
		b.inside(o, e)
		return
	}
	switch {
	case o.has("from") || o.has("to"):
		b.at(o.key("at"), "at is a moment, from and to are a window: leave one of them out")
	case !moment:
		b.at(o.key("at"), "this cannot be seen at one moment: write from and to")
	default:
		o.duration("at", &e.From)
		e.To = e.From
		b.notAfterEnd(o, "at", e)
	}
}

func (b *builder) inside(o object, e *Expectation) {
	switch end := b.s.Duration; {
	case end > 0 && e.To > end:
		b.at(o.get("to"), "%s is after the end: duration is %s", span(e.To), span(end))
	case end > 0 && e.From >= end:
		b.at(o.get("from"), "%s is not before the end: duration is %s, nothing can be seen after it", span(e.From), span(end))
	case o.has("to") && e.From >= e.To:
		b.at(o.get("to"), "to is %s, but must be after from, %s", span(e.To), span(e.From))
	}
}

// deadline reads the window of a leader_within: it ends when the time is over.
func (b *builder) deadline(o object, e *Expectation, within LeaderWithin) {
	for _, key := range []string{"at", "to"} {
		if o.has(key) {
			b.at(o.key(key), "%s does not go with leader_within: it counts from from, for as long as it says", key)
		}
	}
	o.duration("from", &e.From)
	e.To = e.From + within.Within
	b.notAfterEnd(o, "leader_within", e)
}

func (b *builder) notAfterEnd(o object, key string, e *Expectation) {
	if b.s.Duration > 0 && e.To > b.s.Duration {
		b.at(o.get(key), "%s is after the end: duration is %s", span(e.To), span(b.s.Duration))
	}
}

// when ends an expectation's text.
func (e Expectation) when() string {
	if _, ok := e.Want.(LeaderWithin); ok {
		return " of " + span(e.From)
	}
	if e.Moment() {
		return " at " + span(e.From)
	}
	preposition := " in "
	switch e.Want.(type) {
	case Leader, NoLeader:
		preposition = " throughout "
	}
	return fmt.Sprintf("%s%s..%s", preposition, span(e.From), span(e.To))
}

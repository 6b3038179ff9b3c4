package scenario

import "time"

// longestRest is the longest that a node can be told not to stand.
const longestRest = 24 * time.Hour

func (b *builder) stepDown(o object, v *value) (Action, string) {
	s := StepDown{Nodes: b.list(v, b.known)}
	text := words("step-down", names(s.Nodes))
	if o.duration("for", &s.Rest) {
		text += " (for " + span(s.Rest) + ")"
	}
	if s.Rest > longestRest {
		b.at(o.get("for"), "for is %s, but must be at most 24h", span(s.Rest))
	}
	return s, text
}

func (b *builder) unfit(_ object, v *value) (Action, string) {
	ids := b.list(v, b.known)
	return Fitness{Nodes: ids}, words("unfit", names(ids))
}

func (b *builder) fit(_ object, v *value) (Action, string) {
	ids := b.list(v, b.known)
	return Fitness{Nodes: ids, Fit: true}, words("fit", names(ids))
}

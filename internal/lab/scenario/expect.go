package scenario

import (
	"slices"
	"strings"
)

// wants are the keys of what an expectation can want, each with the keys that go
// with it and its reader: the want, nil if it was reported, and its text.
var wants = []struct {
	key    string
	with   []string
	moment bool // makes sense at one moment
	read   func(b *builder, o object, v *value) (Want, string)
}{
	{"leader", []string{"term", "followers"}, true, (*builder).leader},
	{"no_leader", nil, true, (*builder).noLeader},
	{"leader_within", nil, false, (*builder).leaderWithin},
	{"leader_changes", nil, false, (*builder).changes},
	{"max_term", nil, false, (*builder).maxTerm},
	{"availability", nil, false, (*builder).availability},
	{"messages_per_second", nil, false, (*builder).messageRate},
}

var wantModifiers = []string{"term", "followers"}

func wantKeys() (keys []string) {
	for _, w := range wants {
		keys = append(keys, w.key)
	}
	return keys
}

func (b *builder) expectations(o object) {
	v := o.get("expect")
	if v == nil {
		return
	}
	if v.kind != list || len(v.items) == 0 {
		b.at(v, "expect is a list of expectations, as in [{from: 10s, leader: a}]; leave it out to check the protocol's invariants alone")
		return
	}
	for _, item := range v.items {
		b.expectation(item)
	}
}

func (b *builder) expectation(v *value) {
	o := b.object(v, "an expectation", slices.Concat([]string{"at", "from", "to"}, wantKeys(), wantModifiers)...)
	chosen, found := 0, []string{}
	for i, w := range wants {
		if o.has(w.key) {
			chosen, found = i, append(found, w.key)
		}
	}
	switch {
	case len(found) == 0:
		o.incomplete("an expectation wants nothing: add one of %s", strings.Join(wantKeys(), ", "))
		return
	case len(found) > 1:
		b.at(v, "an expectation wants one thing, this one wants %s: make it %d", strings.Join(found, " and "), len(found))
		return
	}
	b.want(o, chosen)
}

func (b *builder) want(o object, chosen int) {
	w := wants[chosen]
	for _, key := range wantModifiers {
		if o.has(key) && !slices.Contains(w.with, key) {
			b.at(o.key(key), "%s does not go with %s", key, w.key)
		}
	}
	want, text := w.read(b, o, o.get(w.key))
	e := Expectation{Pos: o.pos, Want: want}
	if within, ok := want.(LeaderWithin); ok {
		b.deadline(o, &e, within)
	} else {
		b.window(o, &e, w.moment)
	}
	if want != nil {
		e.Text = text + e.when()
		b.s.Expect = append(b.s.Expect, e)
	}
}

// leader reads who must lead, in which term, and who must follow.
func (b *builder) leader(o object, v *value) (Want, string) {
	var l Leader
	text := "any leader"
	if v.kind == scalar && v.text == "any" {
		if l.AnyOf = b.s.candidates(); len(l.AnyOf) == 0 {
			b.at(v, "no node can lead: all are observers or no candidates")
		}
	} else {
		l.AnyOf = b.list(v, b.candidate)
		text = "leader " + strings.Join(names(l.AnyOf), " or ")
	}
	if o.term("term", &l.Term) {
		text += " in term " + l.Term.String()
	}
	if f := o.get("followers"); f != nil {
		l.Followers = b.followers(f, l.AnyOf)
		text += words(" with followers", names(l.Followers))
	}
	return l, text
}

func (b *builder) followers(v *value, leaders []NodeID) []NodeID {
	return b.list(v, func(item *value) (NodeID, bool) {
		id, ok := b.known(item)
		if ok && slices.Contains(leaders, id) {
			b.at(item, "%s cannot lead and follow at a time: name it in one of the two", id)
		}
		return id, ok
	})
}

// candidates are the nodes that can lead.
func (s *Scenario) candidates() (ids []NodeID) {
	for _, n := range s.Nodes {
		if !n.Observer && !n.NotCandidate {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func (b *builder) noLeader(_ object, v *value) (Want, string) {
	if v.kind == scalar && v.text == "all" {
		return NoLeader{}, "no leader at any node"
	}
	ids := b.list(v, b.known)
	return NoLeader{ids}, words("no leader at", names(ids))
}

func (b *builder) leaderWithin(o object, _ *value) (Want, string) {
	var l LeaderWithin
	if !o.positive("leader_within", &l.Within) {
		return nil, ""
	}
	return l, "leader within " + span(l.Within)
}

func (b *builder) changes(_ object, v *value) (Want, string) {
	r, text := b.bounds(v, "leader_changes", parseWhole, number)
	return Changes{r}, "leader changes " + text
}

func (b *builder) maxTerm(o object, _ *value) (Want, string) {
	var m MaxTerm
	if !o.term("max_term", &m.Term) {
		return nil, ""
	}
	return m, "highest term at most " + m.Term.String()
}

func (b *builder) availability(_ object, v *value) (Want, string) {
	r, text := b.bounds(v, "availability", parsePart, func(f float64) string { return percent(ppm(f)) })
	return Availability{r}, "availability " + text
}

func (b *builder) messageRate(_ object, v *value) (Want, string) {
	r, text := b.bounds(v, "messages_per_second", parseFigure, number)
	return MessageRate{r}, "messages per second " + text
}

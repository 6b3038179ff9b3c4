package scenario

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// expectKeys are the keys of an expectation: one of the second group, and for some
// of them those of the third.
type expectKeys struct {
	At, From, To scalar

	Leader            names
	NoLeader          names  `yaml:"no_leader"`
	LeaderWithin      scalar `yaml:"leader_within"`
	LeaderChanges     bounds `yaml:"leader_changes"`
	MaxTerm           scalar `yaml:"max_term"`
	Availability      bounds
	MessagesPerSecond bounds `yaml:"messages_per_second"`

	Term      scalar
	Followers names
}

// bounds is an exact figure or {min, max}.
type bounds struct {
	place
	exact scalar
	mapping[boundKeys]
}

type boundKeys struct{ Min, Max scalar }

func (f *bounds) UnmarshalYAML(ctx context.Context, unmarshal func(any) error) error {
	n, r, err := nodeOf(ctx, unmarshal)
	if err != nil {
		return err
	}
	f.place = placeOf(n)
	if _, ok := n.(ast.ScalarNode); ok {
		f.exact = r.scalar(n)
		return nil
	}
	return unmarshal(&f.mapping)
}

func (b *builder) expectations(all []mapping[expectKeys]) {
	for _, m := range all {
		e := Expectation{Pos: m.pos, To: b.s.Duration}
		if text := b.want(&m.keys, m.place, &e); e.Want != nil {
			b.window(&m.keys, &e)
			e.Text = text + e.when()
			b.s.Expect = append(b.s.Expect, e)
		}
	}
}

// wantNames are the keys of what can be wanted.
func wantNames() []string { return keyNames(reflect.TypeFor[expectKeys]())[3:10] }

// want reads the one thing that an expectation wants, and returns its text; the Want
// stays nil if a problem was reported that leaves nothing to check.
func (b *builder) want(k *expectKeys, at place, e *Expectation) (text string) {
	key, ok := b.one(k, wantNames(), at, "an expectation wants")
	if !ok {
		return ""
	}
	for _, with := range []place{k.Term.place, k.Followers.place} {
		if with.there() && !k.Leader.there() {
			b.at(with, "%s does not go with %s", with.key, key)
		}
	}
	switch key {
	case "leader":
		e.Want, text = b.leader(k)
	case "no_leader":
		if e.Want, text = (NoLeader{}), "no leader at any node"; k.NoLeader.word != "all" {
			ids := b.list(k.NoLeader, b.known)
			e.Want, text = NoLeader{ids}, phrase("no leader at", texts(ids))
		}
	case "leader_within":
		var l LeaderWithin
		if read(b, k.LeaderWithin, &l.Within, parsePositive) {
			e.Want, text = l, "leader within "+span(l.Within)
		}
	case "leader_changes":
		r, within := b.bounds(k.LeaderChanges, parseCount, number)
		e.Want, text = Changes{r}, "leader changes "+within
	case "max_term":
		var m MaxTerm
		if read(b, k.MaxTerm, &m.Term, parseTerm) {
			e.Want, text = m, "highest term at most "+m.Term.String()
		}
	case "availability":
		show := func(f float64) string { return percent(int(math.Round(f * million))) }
		r, within := b.bounds(k.Availability, parsePart, show)
		e.Want, text = Availability{r}, "availability "+within
	case "messages_per_second":
		r, within := b.bounds(k.MessagesPerSecond, parseFigure, number)
		e.Want, text = MessageRate{r}, "messages per second "+within
	}
	return text
}

// leader reads who must lead, in which term, and who must follow.
func (b *builder) leader(k *expectKeys) (Want, string) {
	var l Leader
	text := "any leader"
	if k.Leader.word == "any" {
		for _, n := range b.s.Nodes {
			if !n.Observer && !n.NotCandidate {
				l.AnyOf = append(l.AnyOf, n.ID)
			}
		}
		if len(l.AnyOf) == 0 {
			b.at(k.Leader.place, "no node can lead: all are observers or no candidates")
		}
	} else {
		l.AnyOf = b.list(k.Leader, b.candidate)
		text = "leader " + strings.Join(texts(l.AnyOf), " or ")
	}
	if read(b, k.Term, &l.Term, parseTerm) {
		text += " in term " + l.Term.String()
	}
	if k.Followers.there() {
		l.Followers = b.list(k.Followers, b.known)
		text += phrase(" with followers", texts(l.Followers))
	}
	for _, item := range k.Followers.items {
		if slices.Contains(l.AnyOf, NodeID(item.text)) {
			b.at(item.place, "%s cannot lead and follow at a time: name it in one of the two", item.text)
		}
	}
	return l, text
}

// bounds reads an exact figure or {min, max}, and writes it with show.
func (b *builder) bounds(
	f bounds, parse func(string) (float64, string), show func(float64) string,
) (Range, string) {
	r := Range{math.Inf(-1), math.Inf(1)}
	if read(b, f.exact, &r.Min, parse) {
		r.Max = r.Min
		return r, "exactly " + show(r.Min)
	}
	low, high := read(b, f.keys.Min, &r.Min, parse), read(b, f.keys.Max, &r.Max, parse)
	switch {
	case low && high && r.Min > r.Max:
		b.at(f.place, "min is %s, but must be at most max, %s", show(r.Min), show(r.Max))
	case low && high:
		return r, fmt.Sprintf("from %s to %s", show(r.Min), show(r.Max))
	case low:
		return r, "at least " + show(r.Min)
	case high:
		return r, "at most " + show(r.Max)
	case f.exact == scalar{} && f.keys == boundKeys{}:
		b.at(f.place, "%s bounds nothing: give a figure, or min, or max", f.key)
	}
	return r, ""
}

// window reads when an expectation must hold: at a moment, or from and to, which
// are the start and the end of the run if left out. The window of a leader_within
// ends when its time is over.
func (b *builder) window(k *expectKeys, e *Expectation) {
	end := b.s.Duration
	if within, ok := e.Want.(LeaderWithin); ok {
		for _, wrong := range []place{k.At.place, k.To.place} {
			if wrong.there() {
				b.at(wrong, "%s does not go with leader_within: it counts from from, for as long as it says",
					wrong.key)
			}
		}
		read(b, k.From, &e.From, parseDuration)
		e.To = e.From + within.Within
		b.notAfterEnd(k.LeaderWithin.place, e.To)
		return
	}
	if k.At.there() {
		switch e.Want.(type) {
		case Leader, NoLeader:
		default:
			b.at(k.At.place, "this cannot be seen at one moment: write from and to")
		}
		if k.From.there() || k.To.there() {
			b.at(k.At.place, "at is a moment, from and to are a window: leave one of them out")
		}
		read(b, k.At, &e.From, parseDuration)
		e.To = e.From
		b.notAfterEnd(k.At.place, e.To)
		return
	}
	read(b, k.From, &e.From, parseDuration)
	read(b, k.To, &e.To, parseDuration)
	switch {
	case !b.notAfterEnd(k.To.place, e.To):
	case end > 0 && e.From >= end:
		b.at(k.From.place, "%s is not before the end: duration is %s, nothing can be seen after it",
			span(e.From), span(end))
	case k.To.there() && e.From >= e.To:
		b.at(k.To.place, "to is %s, but must be after from, %s", span(e.To), span(e.From))
	}
}

// when ends an expectation's text.
func (e Expectation) when() string {
	within := "in"
	switch e.Want.(type) {
	case LeaderWithin:
		return " of " + span(e.From)
	case Leader, NoLeader:
		within = "throughout"
	}
	if e.Moment() {
		return " at " + span(e.From)
	}
	return fmt.Sprintf(" %s %s..%s", within, span(e.From), span(e.To))
}

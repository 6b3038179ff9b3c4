package scenario

import (
	"fmt"
	"math"
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
	Record            scalar
	Voters            names
	NotElected        names `yaml:"not_elected"`
	Refused           scalar

	Term      scalar
	Followers names
	ShownBy   names `yaml:"shown_by"`
}

// companions are the keys that go with one of those of what can be wanted.
var companions = map[string]string{"term": "leader", "followers": "leader", "shown_by": "record"}

// bounds is an exact figure or {min, max}.
type bounds struct {
	place
	exact scalar
	mapping[boundKeys]
}

type boundKeys struct{ Min, Max scalar }

func (f *bounds) decode(r *report, n ast.Node) {
	f.place = placeOf(n)
	if _, ok := n.(ast.ScalarNode); ok {
		f.exact = r.scalar(n)
	} else {
		f.mapping.decode(r, n)
	}
}

func (b *builder) expectations(all []mapping[expectKeys]) {
	for _, m := range all {
		e := Expectation{Pos: m.pos, To: b.s.Duration}
		if text, ok := b.want(&m.keys, m.place, &e.Want); ok {
			b.window(&m.keys, &e)
			e.Text = text + e.when()
			b.s.Expect = append(b.s.Expect, e)
		}
	}
}

// wantNames are the keys of what can be wanted.
func wantNames() []string { return keyNames[expectKeys]()[3:14] }

// want reads the one thing that an expectation wants, and returns its text; false if a
// problem was reported that leaves nothing to check.
func (b *builder) want(k *expectKeys, at place, w *Want) (text string, ok bool) {
	if w.Key, ok = b.one(k, wantNames(), at, "an expectation wants"); !ok {
		return "", false
	}
	for _, with := range []place{k.Term.place, k.Followers.place, k.ShownBy.place} {
		if with.there() && companions[with.key] != w.Key {
			b.at(with, "%s does not go with %s", with.key, w.Key)
		}
	}
	switch w.Key {
	case "leader":
		text = b.leader(k, w)
	case "no_leader":
		if text = "no leader at any node"; k.NoLeader.word != "all" {
			w.Nodes = b.list(k.NoLeader, b.known)
			text = phrase("no leader at", texts(w.Nodes))
		}
	case "leader_within":
		ok = read(b, k.LeaderWithin, &w.Within, parsePositive)
		text = "leader within " + span(w.Within)
	case "leader_changes":
		text = "leader changes " + b.bounds(k.LeaderChanges, &w.Range, parseCount, number)
	case "max_term":
		ok = read(b, k.MaxTerm, &w.Term, parseTerm)
		text = "highest term at most " + w.Term.String()
	case "availability":
		show := func(f float64) string { return percent(int(math.Round(f * million))) }
		text = "availability " + b.bounds(k.Availability, &w.Range, parsePart, show)
	case "record":
		text = b.wantRecord(k, w)
	case "voters":
		w.Nodes = b.list(k.Voters, b.known)
		text = phrase("voters", texts(w.Nodes))
	case "not_elected":
		w.Nodes = b.list(k.NotElected, b.known)
		text = phrase("never elected", texts(w.Nodes))
	case "refused":
		ok = read(b, k.Refused, &w.Do, oneOf("one of "+strings.Join(RecordActions, ", "),
			RecordActions...))
		text = "refused " + w.Do
	case "messages_per_second":
		text = "messages per second " + b.bounds(k.MessagesPerSecond, &w.Range, parseFigure, number)
	}
	return text, ok
}

// wantRecord reads which value the newest committed record has, and who must know.
func (b *builder) wantRecord(k *expectKeys, w *Want) string {
	published := func(s Step) bool { return s.Action.Do == "publish" && s.Action.Value == w.Value }
	if read(b, k.Record, &w.Value, parseLine) && !slices.ContainsFunc(b.s.Timeline, published) {
		b.at(k.Record.place, "no step publishes %q", w.Value)
	}
	if !k.ShownBy.there() {
		return "record " + w.Value
	}
	w.Nodes = b.list(k.ShownBy, b.known)
	return "record " + w.Value + phrase(" shown by", texts(w.Nodes))
}

// leader reads who must lead, in which term, and who must follow.
func (b *builder) leader(k *expectKeys, w *Want) (text string) {
	if text = "any leader"; k.Leader.word == "any" {
		for _, n := range b.s.Nodes {
			if (!n.Observer || b.s.added(n.ID)) && !n.NotCandidate {
				w.Nodes = append(w.Nodes, n.ID)
			}
		}
		if len(w.Nodes) == 0 {
			b.at(k.Leader.place, "no node can lead: all are observers or no candidates")
		}
	} else {
		w.Nodes = b.list(k.Leader, b.candidate)
		text = "leader " + strings.Join(texts(w.Nodes), " or ")
	}
	if read(b, k.Term, &w.Term, parseTerm) {
		text += " in term " + w.Term.String()
	}
	if k.Followers.there() {
		w.Followers = b.list(k.Followers, b.known)
		text += phrase(" with followers", texts(w.Followers))
	}
	for _, item := range k.Followers.items {
		if slices.Contains(w.Nodes, NodeID(item.text)) {
			hint := "name it in one of the two"
			if k.Leader.word == "any" {
				hint = "leader: any includes it"
			}
			b.at(item.place, "%s cannot lead and follow at a time: %s", item.text, hint)
		}
	}
	return text
}

// bounds reads an exact figure or {min, max}, and writes it with show.
func (b *builder) bounds(
	f bounds, r *Range, parse func(string) (float64, string), show func(float64) string,
) (text string) {
	*r = Range{math.Inf(-1), math.Inf(1)}
	if read(b, f.exact, &r.Min, parse) {
		r.Max = r.Min
		return "exactly " + show(r.Min)
	}
	low, high := read(b, f.keys.Min, &r.Min, parse), read(b, f.keys.Max, &r.Max, parse)
	switch {
	case low && high && r.Min > r.Max:
		b.at(f.place, "min is %s, but must be at most max, %s", show(r.Min), show(r.Max))
	case low && high:
		return fmt.Sprintf("from %s to %s", show(r.Min), show(r.Max))
	case low:
		return "at least " + show(r.Min)
	case high:
		return "at most " + show(r.Max)
	case f.exact == scalar{} && f.keys == boundKeys{}:
		b.at(f.place, "%s bounds nothing: give a figure, or min, or max", f.key)
	}
	return ""
}

// window reads when an expectation must hold: at a moment, or from and to, which
// are the start and the end of the run if left out. The window of a leader_within
// ends when its time is over.
func (b *builder) window(k *expectKeys, e *Expectation) {
	end := b.s.Duration
	if e.Want.Key == "leader_within" {
		for _, wrong := range []place{k.At.place, k.To.place} {
			if wrong.there() {
				b.at(wrong, "%s does not go with leader_within: it counts from from, for as long as it says",
					wrong.key)
			}
		}
		read(b, k.From, &e.From, parseDuration)
		e.To = e.From + e.Want.Within
		b.notAfterEnd(k.LeaderWithin.place, e.To)
		return
	}
	if k.At.there() {
		if !e.Want.throughout() {
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

// throughout reports whether it must be seen at every moment of a window.
func (w Want) throughout() bool {
	return w.Key == "leader" || w.Key == "no_leader" || w.Key == "record" || w.Key == "voters"
}

// when ends an expectation's text.
func (e Expectation) when() string {
	switch {
	case e.Want.Key == "leader_within":
		return " of " + span(e.From)
	case e.Moment():
		return " at " + span(e.From)
	case e.Want.throughout():
		return fmt.Sprintf(" throughout %s..%s", span(e.From), span(e.To))
	}
	return fmt.Sprintf(" in %s..%s", span(e.From), span(e.To))
}

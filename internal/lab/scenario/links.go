package scenario

import (
	"slices"
	"strings"
)

// linkList is a list of links as the file gives it.
type linkList struct {
	all   bool     // the word "all"
	pairs []Pair   // every direction, once
	texts []string // what was written
	half  *value   // the first that names one direction alone, or nil
}

// links reads one or more of a-b (both directions) and a->b. With wide, a node
// stands for all its links and "all" for all there are.
func (b *builder) links(v *value, wide bool) (l linkList) {
	if v.kind == list && len(v.items) == 0 {
		b.at(v, "an empty list: name at least one link, as in a-b or a->b")
	}
	if wide && v.kind == scalar && v.text == "all" {
		return linkList{all: true, pairs: b.s.linksOf(b.s.ids()), texts: []string{v.text}}
	}
	for _, item := range v.elements() {
		if pairs := b.linkOrNode(item, wide); pairs != nil {
			b.extend(&l, item, pairs)
		}
	}
	return l
}

func (b *builder) extend(l *linkList, item *value, pairs []Pair) {
	isLink := strings.Contains(item.text, "-")
	if isLink && slices.ContainsFunc(pairs, func(p Pair) bool { return slices.Contains(l.pairs, p) }) {
		b.at(item, "%s is in the list twice: leave one out", item.text)
		return
	}
	if isLink && len(pairs) == 1 && l.half == nil {
		l.half = item
	}
	l.pairs = distinct(append(l.pairs, pairs...))
	l.texts = append(l.texts, item.text)
}

func (b *builder) linkOrNode(v *value, wide bool) []Pair {
	switch {
	case v.kind != scalar:
		b.at(v, "a link is written a-b or a->b, this is %s", v.kind.describe())
	case strings.Contains(v.text, "-"):
		return b.oneLink(v)
	case !wide:
		b.at(v, "a link is written a-b or a->b, this is %q; all links of a node are cut by isolate", v.text)
	default:
		if id, ok := b.known(v); ok {
			pairs := b.s.linksOf([]NodeID{id})
			b.alone(v, pairs)
			return pairs
		}
	}
	return nil
}

// alone reports links that there cannot be.
func (b *builder) alone(v *value, pairs []Pair) {
	if len(pairs) == 0 {
		b.at(v, "there are no links: the scenario has one node")
	}
}

func (b *builder) oneLink(v *value) []Pair {
	from, to, half := strings.Cut(v.text, "->")
	if !half {
		from, to, _ = strings.Cut(v.text, "-")
	}
	if from == "" || to == "" || strings.Contains(from+to, "-") {
		b.at(v, "a link is written a-b or a->b, this is %q", v.text)
		return nil
	}
	x, okX := b.known(&value{pos: v.pos, origin: v.origin, text: from})
	y, okY := b.known(&value{pos: v.pos, origin: v.origin, text: to})
	switch {
	case !okX || !okY:
		return nil
	case x == y:
		b.at(v, "%s links %s with itself: name two nodes", v.text, x)
		return nil
	case half:
		return []Pair{{x, y}}
	}
	return []Pair{{x, y}, {y, x}}
}

// linksOf returns both directions of all links of these nodes, each once.
func (s *Scenario) linksOf(ids []NodeID) []Pair {
	pairs := []Pair{}
	for _, id := range ids {
		for _, other := range s.Nodes {
			if other.ID != id {
				pairs = append(pairs, Pair{id, other.ID}, Pair{other.ID, id})
			}
		}
	}
	return distinct(pairs)
}

// distinct removes repetitions and keeps the order.
func distinct(pairs []Pair) []Pair {
	seen := make(map[Pair]bool, len(pairs))
	return slices.DeleteFunc(pairs, func(p Pair) bool {
		before := seen[p]
		seen[p] = true
		return before
	})
}

// once keeps one direction of each link, the first.
func once(pairs []Pair) []Pair {
	seen := make(map[Pair]bool, len(pairs))
	return slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool {
		seen[p] = true
		return seen[Pair{p.To, p.From}]
	})
}

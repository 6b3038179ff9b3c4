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
	half  scalar   // the first that names one direction alone
}

// links reads one or more of a-b (both directions) and a->b. With wide, a node
// stands for all its links and "all" for all there are.
func (b *builder) links(given names, wide bool) (l linkList) {
	if wide && given.word == "all" {
		return linkList{all: true, pairs: b.s.linksOf(b.s.ids()), texts: []string{given.word}}
	}
	for _, item := range given.items {
		var pairs []Pair
		isLink := strings.Contains(item.text, "-")
		if isLink {
			pairs = b.oneLink(item)
		} else if !wide {
			b.at(item.place, "a link is written a-b or a->b, this is %q; "+
				"all links of a node are cut by isolate", item.text)
		} else if id, ok := b.known(item); ok {
			pairs = b.s.linksOf([]NodeID{id})
			b.needsLinks(item.place, pairs)
		}
		if pairs == nil {
			continue
		}
		given := func(p Pair) bool { return slices.Contains(l.pairs, p) }
		if isLink && slices.ContainsFunc(pairs, given) {
			b.at(item.place, "%s is in the list twice: leave one out", item.text)
			continue
		}
		if isLink && len(pairs) == 1 && !l.half.there() {
			l.half = item
		}
		l.pairs, l.texts = distinct(append(l.pairs, pairs...)), append(l.texts, item.text)
	}
	return l
}

// needsLinks reports links that there cannot be.
func (b *builder) needsLinks(at place, pairs []Pair) {
	if len(pairs) == 0 {
		b.at(at, "there are no links: the scenario has one node")
	}
}

// oneLink reads a-b as both directions, a->b as one.
func (b *builder) oneLink(item scalar) []Pair {
	from, to, half := strings.Cut(item.text, "->")
	if !half {
		from, to, _ = strings.Cut(item.text, "-")
	}
	if from == "" || to == "" || strings.Contains(from+to, "-") {
		b.at(item.place, "a link is written a-b or a->b, this is %q", item.text)
		return nil
	}
	x, okX := b.known(scalar{item.place, from})
	y, okY := b.known(scalar{item.place, to})
	switch {
	case !okX || !okY:
		return nil
	case x == y:
		b.at(item.place, "%s links %s with itself: name two nodes", item.text, x)
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

package scenario

import (
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

const (
	longestName = 64  // bytes of a node's name: it heads a lane of every report
	maxNodes    = 256 // observers included; this project's elector takes fewer voters
)

// nodeKeys are what can be special about a node.
type nodeKeys struct {
	Candidate, Observer, Priority scalar
	ClockRate                     scalar `yaml:"clock_rate"`
	Term, Absent, Join            scalar
}

// nodeList is a list of names, or a mapping from names to what is special.
type nodeList struct {
	place
	names   []scalar
	special map[string]*mapping[nodeKeys] // by name
}

func (l *nodeList) decode(r *report, n ast.Node) {
	l.place, l.special = placeOf(n), map[string]*mapping[nodeKeys]{}
	switch n := n.(type) {
	case *ast.SequenceNode:
		r.fill(reflect.ValueOf(&l.names).Elem(), n)
	case *ast.MappingNode:
		for _, entry := range n.Values {
			name, special := r.scalar(entry.Key), &mapping[nodeKeys]{}
			r.fill(reflect.ValueOf(special).Elem(), entry.Value)
			l.names, l.special[name.text] = append(l.names, name), special
		}
	default:
		r.at(l.place, "nodes is a list of names or a mapping from names to what is special about "+
			"them, this is %s", describe(n))
	}
}

// nodes reads who takes part, and derives who votes.
func (b *builder) nodes(l nodeList) {
	if !l.there() {
		return
	}
	if len(l.names) > maxNodes {
		b.at(l.place, "nodes is %d names, but must be at most %d", len(l.names), maxNodes)
		return
	}
	for _, name := range l.names {
		n := Node{ID: NodeID(name.text)}
		if !b.legalName(name) {
			continue
		}
		if b.s.node(n.ID) != nil {
			b.at(name.place, "node %q is there twice: leave one out", n.ID)
			continue
		}
		if special := l.special[name.text]; special != nil {
			b.special(&special.keys, &n)
		}
		b.s.Nodes = append(b.s.Nodes, n)
		if !n.Observer {
			b.s.Election.Voters = append(b.s.Election.Voters, n.ID)
		}
	}
	switch {
	case len(l.names) == 0:
		b.at(l.place, "no nodes: name at least one")
	case len(b.s.Nodes) > 0 && len(b.s.Election.Voters) == 0:
		b.at(l.place, "no voter: at least one node must not be an observer")
	}
}

// legalName reports names that the rest of the format could not tell apart from
// links and words.
func (b *builder) legalName(name scalar) bool {
	illegal := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && (r < '0' || r > '9') && r != '_' && r != '.'
	}
	switch text := name.text; {
	case text == "" || len(text) > longestName || strings.ContainsFunc(text, illegal):
		b.at(name.place, "node name %q must be 1 to %d letters, digits, '_' and '.'", text, longestName)
	case text == "all" || text == "any":
		b.at(name.place, "node name %q stands for nodes elsewhere: take another", text)
	default:
		return true
	}
	return false
}

func (b *builder) special(k *nodeKeys, n *Node) {
	candidate := true
	read(b, k.Observer, &n.Observer, parseFlag)
	if read(b, k.Candidate, &candidate, parseFlag) && n.Observer {
		b.at(k.Candidate.place, "an observer never stands: leave candidate out")
	}
	n.NotCandidate = !candidate
	read(b, k.Priority, &n.Priority, parseInt)
	read(b, k.ClockRate, &n.ClockRatePPM, parseRate)
	read(b, k.Term, &n.Term, parseTerm)
	read(b, k.Absent, &n.Absent, parseFlag)
	if read(b, k.Join, &n.Join, parseFlag); n.Join {
		n.Observer = true
	}
}

// node returns the node of that name, or nil.
func (s *Scenario) node(id NodeID) *Node {
	i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Nodes[i]
}

// ids returns the names of all nodes in the order of the file.
func (s *Scenario) ids() []NodeID {
	ids := make([]NodeID, len(s.Nodes))
	for i, n := range s.Nodes {
		ids[i] = n.ID
	}
	return ids
}

// known reads the name of a node. Without any legal node, all names are unknown and
// none is reported.
func (b *builder) known(name scalar) (NodeID, bool) {
	id := NodeID(name.text)
	if b.s.node(id) != nil {
		return id, true
	}
	if len(b.s.Nodes) > 0 {
		b.at(name.place, "no node is called %q: %s", name.text, suggest(name.text, texts(b.s.ids())))
	}
	return "", false
}

// candidate reads the name of a node that can lead.
func (b *builder) candidate(name scalar) (NodeID, bool) {
	id, ok := b.known(name)
	if !ok {
		return "", false
	}
	switch n := b.s.node(id); {
	case n.Observer && !b.s.added(id):
		b.at(name.place, "%s is an observer and can never lead: name a voter", id)
	case n.NotCandidate:
		b.at(name.place, "%s is no candidate and can never lead: name a node that is one", id)
	default:
		return id, true
	}
	return "", false
}

// added reports whether the timeline makes a node a voter.
func (s *Scenario) added(id NodeID) bool {
	return slices.ContainsFunc(s.Timeline, func(step Step) bool {
		return slices.Contains(step.Action.Add, id)
	})
}

// list reads one or more distinct names with one of the two readers above.
func (b *builder) list(l names, one func(scalar) (NodeID, bool)) []NodeID {
	var ids []NodeID
	for _, item := range l.items {
		id, ok := one(item)
		if ok && slices.Contains(ids, id) {
			b.at(item.place, "%s is in the list twice: leave one out", id)
		} else if ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// linkList is a list of links as the file gives it.
type linkList struct {
	pairs []Pair   // every direction, once
	texts []string // what was written
	half  scalar   // the first that names one direction alone
}

// links reads one or more of a-b (both directions) and a->b. With wide, a node
// stands for all its links and "all" for all there are.
func (b *builder) links(given names, wide bool) (l linkList) {
	if wide && given.word == "all" {
		return linkList{pairs: b.s.AllPairs(), texts: []string{given.word}}
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

// AllPairs returns both directions of all links.
func (s *Scenario) AllPairs() (all []Pair) {
	for i, x := range s.Nodes {
		for _, y := range s.Nodes[i+1:] {
			all = append(all, Pair{y.ID, x.ID}, Pair{x.ID, y.ID})
		}
	}
	return all
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

package scenario

import (
	"slices"
	"strings"
)

const (
	longestName = 64  // bytes of a node's name: it heads a lane of every report
	maxNodes    = 256 // observers included; an elector bounds the voters
)

// reserved are words that stand for nodes where names are expected.
var reserved = []string{"all", "any"}

var nodeKeys = []string{"candidate", "observer", "priority", "clock_rate", "term", "absent"}

// nodes reads a list of names, or a mapping from names to what is special.
func (b *builder) nodes(o object) {
	v := o.get("nodes")
	if v == nil {
		return
	}
	switch named := len(v.items) + len(v.fields); {
	case named > maxNodes:
		b.at(v, "nodes is %d names, but must be at most %d", named, maxNodes)
		return
	case v.kind == mapping:
		for _, f := range v.fields {
			b.node(f.key, f.value)
		}
	case v.kind == list:
		for _, item := range v.items {
			b.node(item, nil)
		}
	default:
		b.at(v, "nodes is a list of names or a mapping from names to what is special about them, this is %s", v.kind.describe())
		return
	}
	b.voters(v)
}

// voters derives who votes.
func (b *builder) voters(v *value) {
	for _, n := range b.s.Nodes {
		if !n.Observer {
			b.s.Election.Voters = append(b.s.Election.Voters, n.ID)
		}
	}
	switch {
	case len(v.items)+len(v.fields) == 0:
		b.at(v, "no nodes: name at least one")
	case len(b.s.Nodes) > 0 && len(b.s.Election.Voters) == 0:
		b.at(v, "no voter: at least one node must not be an observer")
	}
}

func (b *builder) node(name, special *value) {
	n := Node{ID: NodeID(name.text)}
	if !b.legalName(name) {
		return
	}
	if b.s.node(n.ID) != nil {
		b.at(name, "node %q is there twice: leave one out", n.ID)
		return
	}
	if special != nil && special.kind != null {
		b.special(b.object(special, "node "+name.text, nodeKeys...), &n)
	}
	b.s.Nodes = append(b.s.Nodes, n)
}

// legalName reports names that the rest of the format could not tell apart from
// links and words.
func (b *builder) legalName(name *value) bool {
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.'
	}
	switch {
	case name.kind != scalar:
		b.at(name, "a node is given by its name, this is %s", name.kind.describe())
	case name.text == "" || len(name.text) > longestName || strings.ContainsFunc(name.text, func(r rune) bool { return !legal(r) }):
		b.at(name, "node name %q must be 1 to %d letters, digits, '_' and '.'", name.text, longestName)
	case slices.Contains(reserved, name.text):
		b.at(name, "node name %q stands for nodes elsewhere: take another", name.text)
	default:
		return true
	}
	return false
}

func (b *builder) special(o object, n *Node) {
	candidate := true
	o.flag("observer", &n.Observer)
	if o.flag("candidate", &candidate) && n.Observer {
		b.at(o.key("candidate"), "an observer never stands: leave candidate out")
	}
	n.NotCandidate = !candidate
	o.count("priority", &n.Priority)
	read(o, "clock_rate", &n.ClockRatePPM, parseRate)
	o.term("term", &n.Term)
	o.flag("absent", &n.Absent)
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

// known reads the name of a node.
func (b *builder) known(v *value) (NodeID, bool) {
	id := NodeID(v.text)
	switch {
	case v.kind != scalar:
		b.at(v, "a node is given by its name, this is %s", v.kind.describe())
	case len(b.s.Nodes) > 0 && b.s.node(id) == nil:
		b.at(v, "no node is called %q: %s", v.text, suggest(v.text, names(b.s.ids())))
	default:
		return id, len(b.s.Nodes) > 0
	}
	return "", false
}

// candidate reads the name of a node that can lead.
func (b *builder) candidate(v *value) (NodeID, bool) {
	id, ok := b.known(v)
	if !ok {
		return "", false
	}
	switch n := b.s.node(id); {
	case n.Observer:
		b.at(v, "%s is an observer and can never lead: name a voter", id)
	case n.NotCandidate:
		b.at(v, "%s is no candidate and can never lead: name a node that is one", id)
	default:
		return id, true
	}
	return "", false
}

// list reads one or more distinct names with one of the two readers above.
func (b *builder) list(v *value, one func(*value) (NodeID, bool)) []NodeID {
	var ids []NodeID
	if v.kind == list && len(v.items) == 0 {
		b.at(v, "an empty list: name at least one node")
	}
	for _, item := range v.elements() {
		id, ok := one(item)
		if ok && slices.Contains(ids, id) {
			b.at(item, "%s is in the list twice: leave one out", id)
		} else if ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func names[ID ~string](ids []ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

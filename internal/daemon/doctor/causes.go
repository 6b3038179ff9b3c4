package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// Cause is one thing that is wrong, as findings of one kind show it: those that both ends of
// a pair report, and those that one node has with several others.
type Cause struct {
	Kind           findings.Kind
	Where          string // the nodes: "a - b", or "a - b, c" for a with b and a with c
	Detail, Advice string // of the first finding
}

// pair are two nodes, sorted; the first is "" where a finding is about one node alone.
type pair [2]cluster.NodeID

// Causes returns what the findings of nodes have for causes, sorted by kind.
func Causes(statuses []*cluster.Status) (all []Cause) {
	found := map[findings.Kind]map[pair]findings.Finding{}
	for _, st := range statuses {
		for _, f := range st.Findings {
			at := pair{min(st.Node, f.Peer), max(st.Node, f.Peer)}
			if found[f.Kind] == nil {
				found[f.Kind] = map[pair]findings.Finding{}
			}
			if _, known := found[f.Kind][at]; !known {
				found[f.Kind][at] = f
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		for _, star := range stars(slices.Collect(maps.Keys(found[kind]))) {
			f := found[kind][star.pairs[0]]
			all = append(all, Cause{kind, star.where(), f.Detail, f.Advice})
		}
	}
	return all
}

// star are pairs that have a node in common.
type star struct {
	node  cluster.NodeID
	pairs []pair // sorted
}

// stars puts pairs together whose cause may be one node: the one that most of them have in
// common, then that of the rest.
func stars(pairs []pair) (all []star) {
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	for len(pairs) > 0 {
		count := map[cluster.NodeID]int{}
		for _, p := range pairs {
			count[p[0]]++
			count[p[1]]++
		}
		delete(count, "")
		node := slices.MaxFunc(slices.Sorted(maps.Keys(count)), func(a, b cluster.NodeID) int {
			return cmp.Compare(count[a], count[b])
		})
		s := star{node: node}
		pairs = slices.DeleteFunc(pairs, func(p pair) bool {
			if mine := p[0] == node || p[1] == node; !mine {
				return false
			}
			s.pairs = append(s.pairs, p)
			return true
		})
		all = append(all, s)
	}
	return all
}

func (s star) where() string {
	var others []cluster.NodeID
	for _, p := range s.pairs {
		other := p[0]
		if other == s.node {
			other = p[1]
		}
		if other != "" {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return string(s.node)
	}
	return fmt.Sprintf("%s - %s", s.node, words.List(others))
}

// Remarks are texts about nodes; those of the same text are one.
type Remarks struct {
	texts []string
	nodes [][]cluster.NodeID // of each text
}

// Add takes note of a text about a node.
func (r *Remarks) Add(id cluster.NodeID, text string) {
	i := slices.Index(r.texts, text)
	if i < 0 {
		i = len(r.texts)
		r.texts, r.nodes = append(r.texts, text), append(r.nodes, nil)
	}
	r.nodes[i] = append(r.nodes[i], id)
}

// Each calls f with each text, in the order in which they came, and the nodes it is about.
func (r *Remarks) Each(f func(nodes, text string)) {
	for i, text := range r.texts {
		f(words.List(r.nodes[i]), text)
	}
}

// dropDerived leaves out what only follows from something that is told: that nobody is seen
// by nodes that have found nobody at all, that a voter is missing which is being added or
// removed or was never met and is not in all lists, and, of nodes whose voters differ, what
// they found and their messages.
func (s *survey) dropDerived() {
	alone := !slices.ContainsFunc(s.answered, func(a Answer) bool {
		return !slices.ContainsFunc(a.Status.Findings, func(f findings.Finding) bool {
			return f.Kind == findings.Alone
		})
	})
	differ, told, changed := false, false, ""
	for _, c := range s.Checks {
		differ = differ || c.Kind == findings.VotersDiffer
		if c.Kind == findings.VotersDiffer && c.Subject == "voters" {
			told, changed = true, c.Where
		}
	}
	s.Checks = slices.DeleteFunc(s.Checks, func(c Check) bool {
		switch c.Kind {
		case NeverSeen:
			counted, _ := s.countedBy(cluster.NodeID(c.Where))
			return alone || len(counted) > 0 && len(counted) < len(s.answered)
		case NoAnswer:
			return c.Level == Fail && c.Where == changed && changed != ""
		case findings.VotersDiffer:
			return told && c.Subject == "finding"
		case Anomaly:
			return differ && strings.HasPrefix(c.What, notEntitled+":")
		}
		return false
	})
}

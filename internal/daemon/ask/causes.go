package ask

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

// cause is one problem, made of findings of one kind: those that both ends of a pair report, and
// those that one node has with several others.
type cause struct {
	findings.Finding        // the first of them
	where            string // the nodes: "a - b", or "a - b, c" for a with b and a with c
}

// pair is two nodes, sorted. The first is "" if a finding is about one node alone.
type pair [2]cluster.NodeID

// causes puts the findings of all nodes together by their causes, sorted by kind.
func causes(answered []Answer) (all []cause) {
	found := map[Kind]map[pair]findings.Finding{}
	for _, a := range answered {
		for _, f := range a.Status.Findings {
			at := pair{min(a.Node, f.Peer), max(a.Node, f.Peer)}
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
			all = append(all, cause{found[kind][star.pairs[0]], star.where()})
		}
	}
	return all
}

type star struct {
	node  cluster.NodeID
	pairs []pair // sorted
}

// stars puts pairs together that one node may explain: the node that most of the pairs have in
// common, then the one that most of the rest have in common.
func stars(pairs []pair) (all []star) {
	slices.SortFunc(pairs, func(a, b pair) int { return slices.Compare(a[:], b[:]) })
	for len(pairs) > 0 {
		count := map[cluster.NodeID]int{}
		for _, p := range pairs {
			count[p[0]]++
			count[p[1]]++
		}
		delete(count, "")
		s := star{node: slices.MaxFunc(slices.Sorted(maps.Keys(count)), func(a, b cluster.NodeID) int {
			return cmp.Compare(count[a], count[b])
		})}
		pairs = slices.DeleteFunc(pairs, func(p pair) bool {
			mine := p[0] == s.node || p[1] == s.node
			if mine {
				s.pairs = append(s.pairs, p)
			}
			return mine
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

// text puts what is said of each pair together.
func (s star) text(of map[pair]string) string {
	var parts []string
	for _, at := range s.pairs {
		text := of[at]
		if len(s.pairs) > 1 {
			text = fmt.Sprintf("%s - %s: %s", at[0], at[1], text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// remarks are texts about nodes, in the order of arrival. Nodes with the same text share a remark.
type remarks []remark

type remark struct {
	text  string
	nodes []cluster.NodeID
}

func (r *remarks) add(id cluster.NodeID, text string) {
	i := slices.IndexFunc(*r, func(m remark) bool { return m.text == text })
	if i < 0 {
		i = len(*r)
		*r = append(*r, remark{text: text})
	}
	(*r)[i].nodes = append((*r)[i].nodes, id)
}

func (r remarks) lines() (all []string) {
	for _, m := range r {
		all = append(all, words.List(m.nodes)+": "+m.text)
	}
	return all
}

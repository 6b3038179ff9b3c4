package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// A Selection says which open elections are listed one by one. The zero value selects all: the
// default one first, then the others by name.
type Selection struct {
	Group  string // this election alone; the rest counts for nothing then
	Prefix string // those whose names begin with it
	After  string // those whose names come after it, in the order of bytes
	Limit  int    // at most so many of them, the first ones by name; 0 for no limit
	// Few, if it is not 0, is the most that are listed. Of more than that, only the default election
	// and Top others are: those that have had no leader for the longest time and then those whose
	// newest transition is the youngest. Sums has the rest.
	Few int
	Top int
}

// Sums says what all elections of a Selection come to, with or without a list of them.
type Sums struct {
	Open           int            `json:"open"`
	Roles          map[string]int `json:"roles"`          // how many by this node's role
	Leaders        map[NodeID]int `json:"leaders"`        // how many by the leader that it is or follows
	Leading        int            `json:"leading"`        // those that it leads with a valid lease
	WithoutLeader  int            `json:"without_leader"` // those in which it knows no leader
	LongestWithout Seconds        `json:"longest_without_leader_s"`
	HighestTerm    lsn.Term       `json:"highest_term"`
	Quorum         int            `json:"quorum"` // the largest
	// Those that this node leads and in which a voter lacks the newest record, those in which it
	// changes the voters, and those whose record does not name its data directory.
	VotersBehind int    `json:"voters_behind,omitempty"`
	VotersChange int    `json:"voters_change,omitempty"`
	NotCounted   int    `json:"not_counted,omitempty"`
	WorkOverdue  int    `json:"work_overdue,omitempty"` // those whose guarded work goes on too long
	WorkEnds     uint64 `json:"work_ends,omitempty"`    // how often the work of Run ended by itself
	// Unlisted says that there were more than Selection.Few.
	Unlisted bool `json:"-"`
}

// look calls list for each election that is to be listed, and sums up all that are selected. next
// is the last one of a page after which there are more, otherwise "".
func (n *Node) look(sel Selection, list func(*loop.Snapshot)) (sums Sums, next string) {
	sums = Sums{Roles: map[string]int{}, Leaders: map[NodeID]int{}}
	all := n.wanted(sel)
	if sel.Limit > 0 || sel.Few == 0 || len(all) <= sel.Few {
		sortByName(all)
	}
	if sel.Limit > 0 && len(all) > sel.Limit {
		all, next = all[:sel.Limit], all[sel.Limit-1].Name
	}
	sums.Unlisted = sel.Few > 0 && len(all) > sel.Few
	var top []*loop.Glance
	var first []*loop.Election
	for g := range n.loop.Glances(all) {
		sums.add(g, slices.Contains(n.uncounted(&g.Record, nil), n.cfg.Node))
		if g.Name == DefaultGroup {
			first = append(first, g.Election)
		} else if at, _ := slices.BinarySearchFunc(top, g, byNotability); at < sel.Top && sums.Unlisted {
			kept := *g
			top = slices.Insert(top, at, &kept)
			top = top[:min(len(top), sel.Top)]
		}
	}
	switch {
	case sums.Unlisted:
		all = first
		for _, g := range top {
			all = append(all, g.Election)
		}
	case len(first) > 0 && sel.Limit == 0 && sel.After == "":
		all = slices.DeleteFunc(all, func(e *loop.Election) bool { return e == first[0] })
		all = append(first, all...)
	}
	for s := range n.loop.Snapshots(all) {
		list(s)
	}
	return sums, next
}

// Elections returns the open elections of a selection by name, however many they are: Few and Top
// count for nothing.
func (n *Node) Elections(sel Selection) (open []*Election) {
	all := n.selected(sel)
	if sel.Limit > 0 {
		all = all[:min(len(all), sel.Limit)]
	}
	for _, p := range all {
		open = append(open, &Election{n, p})
	}
	return open
}

// selected returns the elections that may be selected, sorted by name.
func (n *Node) selected(sel Selection) []*loop.Election {
	all := n.wanted(sel)
	sortByName(all)
	return all
}

func sortByName(all []*loop.Election) {
	slices.SortFunc(all, func(a, b *loop.Election) int { return strings.Compare(a.Name, b.Name) })
}

// wanted is selected in no order: to sort very many takes longer than to look at them.
func (n *Node) wanted(sel Selection) []*loop.Election {
	if sel.Group == "" {
		return n.loop.Elections(func(name string) bool {
			return strings.HasPrefix(name, sel.Prefix) && name > sel.After
		})
	}
	if e := n.loop.Find(sel.Group); e != nil {
		return []*loop.Election{e}
	}
	return nil
}

// byNotability orders elections as Selection.Few says.
func byNotability(a, b *loop.Glance) int {
	return cmp.Or(cmp.Compare(b.Leaderless, a.Leaderless), b.Since.Compare(a.Since),
		strings.Compare(a.Name, b.Name))
}

// add counts an election, and whether this node counts for nothing there.
func (t *Sums) add(s *loop.Glance, uncounted bool) {
	t.Open++
	t.Roles[s.Role.String()]++
	t.HighestTerm, t.Quorum = max(t.HighestTerm, s.Term), max(t.Quorum, s.Quorum)
	t.WorkEnds += s.WorkEnded().Count
	t.LongestWithout = max(t.LongestWithout, seconds(s.Leaderless))
	if s.Leader != "" {
		t.Leaders[s.Leader]++
	}
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	count(&t.Leading, s.Leading)
	count(&t.WithoutLeader, s.Leader == "")
	count(&t.VotersBehind, len(s.Record.Behind) > 0)
	count(&t.NotCounted, uncounted)
	count(&t.VotersChange, s.Record.Change != elector.ChangeVoters{})
	count(&t.WorkOverdue, s.Overdue)
}

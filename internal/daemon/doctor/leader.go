package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/base/printable"
)

// leader checks that all nodes know one leader, in one term, and that it does lead.
func (s *survey) leader() {
	views := map[string][]cluster.NodeID{}
	var leading []string
	var known cluster.GroupStatus
	var leaderless Remarks
	for _, a := range s.answered {
		g := election(a)
		if g.Leading {
			leading = append(leading, fmt.Sprintf("%s in term %d", a.Node, g.Term))
		}
		if g.Leader == "" {
			leaderless.Add(a.Node, g.Explanation)
			continue
		}
		known = g
		view := fmt.Sprintf("%s in term %d", g.Leader, g.Term)
		views[view] = append(views[view], a.Node)
	}
	leaderless.Each(func(nodes, text string) {
		s.problem(Fail, NoLeader, "leader", nodes, "%s", text)
	})
	switch {
	case len(leading) > 1:
		s.problem(Fail, LeaderDisputed, "leader", "",
			"more than one node says that it leads: %s", printable.List(leading))
	case len(views) > 1:
		s.problem(Warn, LeaderDisputed, "leader", "", "the nodes do not agree: %s",
			sides(views, "%[2]s say %[1]s"))
	case len(views) == 1 && len(leading) == 0:
		why := "does not lead any more"
		if s.silent(known.Leader) {
			why = "does not answer here"
		}
		s.problem(Warn, LeaderDisputed, "leader", "", "%s is followed, and %s", known.Leader, why)
	case len(views) == 1:
		s.good("leader", "", "%s leads in term %d; all that answer agree", known.Leader, known.Term)
	}
}

// sides says which nodes say what, in the order of what they say.
func sides(nodes map[string][]cluster.NodeID, format string) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(nodes)) {
		parts = append(parts, fmt.Sprintf(format, what, printable.List(nodes[what])))
	}
	return strings.Join(parts, "; ")
}

// votersAgree compares the lists by which nodes elect.
func (s *survey) votersAgree() {
	lists := map[string][]cluster.NodeID{}
	for _, a := range s.answered {
		counted := slices.DeleteFunc(slices.Sorted(slices.Values(election(a).Voters)),
			func(id cluster.NodeID) bool { return slices.Contains(s.lost, id) })
		voters := printable.List(counted)
		lists[voters] = append(lists[voters], a.Node)
	}
	var differ []cluster.NodeID
	for _, v := range s.voters {
		if counted, _ := s.countedBy(v); len(counted) < len(s.answered) {
			differ = append(differ, v)
		}
	}
	switch {
	case len(differ) == 1:
		s.voterChange(differ[0])
	case len(lists) > 1:
		s.problem(Fail, findings.VotersDiffer, "voters", "", "%s", sides(lists, "%[2]s: %[1]s"))
	case len(s.voters)%2 == 0 && len(s.lost) == 0:
		s.problem(Warn, EvenVoters, "voters", "", "there are %d: %s", len(s.voters),
			printable.List(s.voters))
	default:
		s.good("voters", "", "%d: %s", len(s.voters), printable.List(s.voters))
	}
}

// countedBy are the nodes that count a voter, and the others.
func (s *survey) countedBy(voter cluster.NodeID) (counted, rest []cluster.NodeID) {
	for _, a := range s.answered {
		if slices.Contains(election(a).Voters, voter) {
			counted = append(counted, a.Node)
		} else {
			rest = append(rest, a.Node)
		}
	}
	return counted, rest
}

// voterChange tells how far a change of one voter is, and what is next.
func (s *survey) voterChange(id cluster.NodeID) {
	const next = "give the rest the new list and restart them one by one, the leader last"
	const see = "; docs/operations.md#changing-the-voters"
	counted, rest := s.countedBy(id)
	what := fmt.Sprintf("%s is added or removed: %s count it, %s do not", id, printable.List(counted),
		printable.List(rest))
	switch {
	case s.silent(id):
		s.problem(Fail, findings.VotersDiffer, "voters", string(id), "%s; and it does not answer", what).
			Fix = "start it before any other node is restarted" + see
	case len(counted) == 1 && counted[0] == id && len(rest) > 1:
		s.problem(Warn, findings.VotersDiffer, "voters", string(id),
			"nobody but %s itself counts it", id).
			Fix = "if it was removed, stop it; if it is new, " + next + see
	default:
		s.problem(Warn, findings.VotersDiffer, "voters", string(id), "%s", what).Fix = next + see
	}
}

// observers warns of members that are no voters if a voter never came: one may be
// the other, misspelt.
func (s *survey) observers() {
	missing := slices.DeleteFunc(slices.Clone(s.voters), func(id cluster.NodeID) bool {
		return !s.silent(id) || s.everSeen(id)
	})
	for _, a := range s.answered {
		switch {
		case slices.Contains(s.voters, a.Node), slices.Contains(s.lost, a.Node):
		case len(missing) > 0:
			s.problem(Warn, NoVoter, "observers", string(a.Node),
				"it takes part without a vote, while %s never came", printable.List(missing))
		default:
			s.good("observers", string(a.Node), "follows without a vote")
		}
	}
}

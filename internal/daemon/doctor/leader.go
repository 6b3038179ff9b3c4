package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
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
			if !s.shutOut(a.Node) {
				leaderless.Add(a.Node, g.Explanation)
			}
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
			"more than one node says that it leads: %s", words.List(leading))
	case len(views) > 1:
		s.problem(Warn, LeaderDisputed, "leader", "", "the nodes do not agree: %s",
			sides(views, "%[2]s: %[1]s"))
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

// shutOut reports whether a node that knows no leader is refused by all the others, one of
// which knows one: then a finding says it.
func (s *survey) shutOut(id cluster.NodeID) bool {
	led := false
	for _, a := range s.answered {
		if a.Node != id && !s.refuses(a.Node, id) {
			return false
		}
		led = led || election(a).Leader != ""
	}
	return led
}

// successors warns of a leader that no other node can follow.
func (s *survey) successors() {
	var idle []cluster.NodeID
	for _, id := range s.voters {
		i := slices.IndexFunc(s.answered, func(a Answer) bool { return a.Node == id })
		switch {
		case i < 0: // it may be one that can
			return
		case election(s.answered[i]).Leading:
		case election(s.answered[i]).Candidate:
			return
		default:
			idle = append(idle, id)
		}
	}
	if len(idle) > 0 {
		s.problem(Warn, NoSuccessor, "successors", "", "no other node can take over: not a candidate: %s",
			words.List(idle))
	}
}

// sides says which nodes say what, in the order of what they say.
func sides(nodes map[string][]cluster.NodeID, format string) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(nodes)) {
		parts = append(parts, fmt.Sprintf(format, what, words.List(nodes[what])))
	}
	return strings.Join(parts, "; ")
}

// votersAgree compares the lists by which nodes elect.
func (s *survey) votersAgree() {
	lists := map[string][]cluster.NodeID{}
	for _, a := range s.answered {
		counted := slices.DeleteFunc(slices.Sorted(slices.Values(election(a).Voters)),
			func(id cluster.NodeID) bool { return slices.Contains(s.lost, id) })
		voters := words.List(counted)
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
			words.List(s.voters))
	default:
		s.good("voters", "", "%d: %s", len(s.voters), words.List(s.voters))
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
	what := fmt.Sprintf("%s is added or removed: counted by %s; not by %s", id,
		words.List(counted), words.List(rest))
	switch {
	case s.silent(id):
		s.problem(Fail, findings.VotersDiffer, "voters", string(id), "%s; and it does not answer", what).
			Fix = "start it before any other node is restarted, or take the name out, if it is " +
			"mistyped" + see
	case len(counted) == 1 && counted[0] == id && len(rest) > 1:
		s.problem(Warn, findings.VotersDiffer, "voters", string(id),
			"nobody but %s itself counts it", id).
			Fix = "if it was removed, stop it; if it is new, " + next + see
	default:
		s.problem(Warn, findings.VotersDiffer, "voters", string(id), "%s", what).Fix = next + see
	}
}

// observers warns of members that are no voters if a voter never came, or came from the same
// address: one may be the other, misspelt.
func (s *survey) observers() {
	for _, a := range s.answered {
		missing := slices.DeleteFunc(slices.Clone(s.voters), func(id cluster.NodeID) bool {
			sharesAddr := func(b Answer) bool {
				addr := admin.MemberIn(*b.Status, id).MeshAddr
				return addr != "" && addr == admin.MemberIn(*b.Status, a.Node).MeshAddr
			}
			return !s.silent(id) || s.everSeen(id) && !slices.ContainsFunc(s.answered, sharesAddr)
		})
		switch {
		case slices.Contains(s.voters, a.Node), slices.Contains(s.lost, a.Node):
		case len(missing) > 0:
			s.problem(Warn, NoVoter, "observers", string(a.Node),
				"it takes part without a vote, while %s is missing", words.List(missing))
		default:
			s.good("observers", string(a.Node), "follows without a vote")
		}
	}
}

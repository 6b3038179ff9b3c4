// Package doctor finds what is wrong with a cluster that runs, from what its nodes say
// (Examine). Each problem names what is wrong and where, why it matters, how to fix it,
// and the entry of docs/errors.md that says more. Explain does the same for the error of
// a node that cannot start. The package asks nobody and changes nothing; its functions
// are safe for concurrent use.
package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// Answer is what a node said when it was asked, or that it said nothing.
type Answer struct {
	Node   cluster.NodeID  // "" if it is not known who should answer
	Addr   string          // where it was asked; "" if it has told nobody an admin address
	Status *cluster.Status // nil if it did not answer
	Error  string          // why not
	// Ahead is by how much its wall clock is ahead of the asker's: surely
	// between the two; both are 0 if that is not known.
	AheadLeast, AheadMost time.Duration
	// Figures are its metrics, by name with labels; nil if they are not known.
	Figures map[string]float64
}

// survey is a cluster as its nodes see it.
type survey struct {
	Report
	answers    []Answer         // sorted by node
	answered   []Answer         // one of each node
	duplicates []Answer         // further processes of a name that answered
	foreign    []Answer         // of another cluster than the first that answered
	voters     []cluster.NodeID // that any node counts, sorted, without the lost
	lost       []cluster.NodeID // declared lost on a node and not readmitted there
}

// Examine reports what is wrong with a cluster that runs, given the answers of all
// its nodes. At least one must have a status.
func Examine(answers []Answer) Report {
	s := &survey{answers: slices.Clone(answers)}
	slices.SortStableFunc(s.answers, func(a, b Answer) int {
		return strings.Compare(string(a.Node), string(b.Node))
	})
	voters := map[cluster.NodeID]bool{}
	for _, a := range s.answers {
		if a.Status == nil {
			continue
		}
		if len(s.answered) > 0 && s.answered[0].Status.Cluster != a.Status.Cluster {
			s.foreign = append(s.foreign, a)
			continue
		}
		s.add(a)
		for _, id := range election(a).Voters {
			voters[id] = true
		}
		for _, e := range a.Status.Emergencies {
			s.lost = append(s.lost, e.Missing()...)
		}
	}
	for _, id := range s.lost { // what is to be done is said with the emergency
		delete(voters, id)
	}
	s.voters = slices.Sorted(maps.Keys(voters))
	for _, check := range []func(){
		s.findings, s.names, s.votersAgree, s.presence, s.links, s.leader, s.successors, s.observers,
		s.pauses, s.lease, s.disks, s.versions, s.wallClocks, s.eachNode, s.messages,
	} {
		check()
	}
	s.dropDerived()
	return s.Report
}

// add takes in an answer. A node that was asked at two addresses counts once. Of two
// processes of one name the one with more links is the member.
func (s *survey) add(a Answer) {
	linksUp := func(a Answer) (n int) {
		for _, m := range a.Status.Members {
			if m.Link == "up" {
				n++
			}
		}
		return n
	}
	i := slices.IndexFunc(s.answered, func(b Answer) bool { return b.Node == a.Node })
	switch {
	case i < 0:
		s.answered = append(s.answered, a)
	case s.answered[i].Status.Identity == a.Status.Identity:
	case linksUp(a) > linksUp(s.answered[i]):
		s.duplicates, s.answered[i] = append(s.duplicates, s.answered[i]), a
	default:
		s.duplicates = append(s.duplicates, a)
	}
}

// election is a node's part in the default election.
func election(a Answer) cluster.GroupStatus { return a.Status.Groups[0] }

// presence names each node that does not answer, and what the others know of it.
func (s *survey) presence() {
	mark := len(s.Checks)
	nameless := s.nameless()
	for _, a := range s.answers {
		if a.Status != nil || a.Node == "" && nameless != "" {
			continue
		}
		where := string(a.Node)
		if where == "" {
			where = a.Addr
		}
		why := strings.TrimPrefix(a.Error, where+": ") // the address is said once
		level, kind := Warn, NoAnswer
		switch {
		case a.Node == "" && !slices.ContainsFunc(s.voters, s.silent):
			s.problem(Warn, NoAnswer, "members", where, "%s; every voter answers elsewhere", why).
				Fix = "leave that address out, if no node is to be there"
			continue
		case a.Node == "" || slices.Contains(s.voters, a.Node):
			level = Fail
		case slices.Contains(s.lost, a.Node):
			s.good("members", where, "it does not run: it was declared lost")
			continue
		case !s.seen(a.Node, func(m cluster.MemberStatus) bool {
			return m.Voter || m.Gossip == "alive" || m.Link == "up"
		}):
			s.good("members", where, "it does not run, and nobody counts it as a voter")
			continue
		}
		if s.runs(a.Node) {
			s.problem(Warn, NoAnswer, "members", where,
				"it runs (link up), but its admin side cannot be asked: %s", why).
				Fix = "name its address with --admin, or give it an admin-addr that others reach"
			continue
		}
		if a.Addr == "" && !s.everSeen(a.Node) {
			kind = NeverSeen
		}
		for _, b := range s.answered {
			if m := admin.MemberIn(*b.Status, a.Node); m.Node != "" && m.Link != "none" {
				why += fmt.Sprintf("; %s has its link %s", b.Node, m.Link)
			}
		}
		if level == Fail {
			why += nameless
		}
		s.problem(level, kind, "members", where, "%s", why)
	}
	if s.goodSince(mark) {
		s.good("members", "", "all %d answer: %s", len(s.answered), words.List(nodes(s.answered)))
	}
}

// nameless is what is known of addresses at which nobody answers, so that nobody knows who
// should, if a voter is silent: they are told with that voter, which is missing only once.
func (s *survey) nameless() (text string) {
	if !slices.ContainsFunc(s.answers, func(a Answer) bool {
		return a.Status == nil && slices.Contains(s.voters, a.Node)
	}) {
		return ""
	}
	for _, a := range s.answers {
		if a.Status == nil && a.Node == "" {
			text += "; " + a.Error
		}
	}
	return text
}

// silent reports whether no node of that name answered.
func (s *survey) silent(id cluster.NodeID) bool { return !slices.Contains(nodes(s.answered), id) }

// runs reports whether every node that answers has a link to that one.
func (s *survey) runs(id cluster.NodeID) bool {
	return !slices.ContainsFunc(s.answered, func(a Answer) bool {
		return a.Node != id && admin.MemberIn(*a.Status, id).Link != "up"
	})
}

// everSeen reports whether any node has ever met that one.
func (s *survey) everSeen(id cluster.NodeID) bool {
	return s.seen(id, func(m cluster.MemberStatus) bool {
		return m.GossipAddr != "" || m.Link != "none"
	})
}

// seen reports whether any node sees another one like that.
func (s *survey) seen(id cluster.NodeID, like func(cluster.MemberStatus) bool) bool {
	return slices.ContainsFunc(s.answered, func(a Answer) bool {
		m := admin.MemberIn(*a.Status, id)
		return m.Node != "" && like(m)
	})
}

// names finds members of other clusters, and names that two processes have.
func (s *survey) names() {
	for _, a := range s.foreign {
		s.problem(Fail, findings.WrongCluster, "clusters", string(a.Node),
			"it is of cluster %q, and %s of %q: only that one was examined",
			a.Status.Cluster, s.answered[0].Node, s.answered[0].Status.Cluster)
	}
	for _, b := range s.duplicates {
		i := slices.IndexFunc(s.answered, func(a Answer) bool { return a.Node == b.Node })
		a := s.answered[i]
		s.problem(Fail, findings.NameTwice, "names", string(a.Node),
			"two processes have this name: at %s, up for %s, and at %s, up for %s", a.Addr,
			a.Status.Uptime.Duration().Round(time.Second), b.Addr,
			b.Status.Uptime.Duration().Round(time.Second))
	}
}

func nodes(answers []Answer) (ids []cluster.NodeID) {
	for _, a := range answers {
		ids = append(ids, a.Node)
	}
	return ids
}

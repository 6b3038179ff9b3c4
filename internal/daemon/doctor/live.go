package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
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
	// Figures are its metrics, by name with labels; nil if they were not to be had.
	Figures map[string]float64
}

// survey is a cluster as its nodes see it.
type survey struct {
	Report
	answers  []Answer         // sorted by node
	answered []Answer         // one of each node
	others   []Answer         // further processes of a name that answered
	foreign  []Answer         // of another cluster than the first that answered
	voters   []cluster.NodeID // that anybody counts, sorted
}

// Examine reports what is wrong with a cluster that runs, given the answers of all
// its nodes. At least one must have a status.
func Examine(answers []Answer) Report {
	s := &survey{answers: slices.Clone(answers)}
	slices.SortStableFunc(s.answers, func(a, b Answer) int { return strings.Compare(string(a.Node), string(b.Node)) })
	seen := map[cluster.NodeID]bool{}
	for _, a := range s.answers {
		if a.Status == nil {
			continue
		}
		if len(s.answered) > 0 && s.answered[0].Status.Cluster != a.Status.Cluster {
			s.foreign = append(s.foreign, a)
			continue
		}
		s.take(a)
		for _, id := range election(a).Voters {
			seen[id] = true
		}
	}
	s.voters = slices.Sorted(maps.Keys(seen))
	for _, check := range []func(){
		s.presence, s.links, s.leader, s.terms, s.failures, s.findings, s.clusters, s.twins, s.votersCounted, s.observers,
		s.lease, s.disks, s.versions, s.wallClocks, s.emergencies, s.oddities,
	} {
		check()
	}
	return s.Report
}

// take adds an answer, the first of its name or a further one. A node that was asked
// at two addresses counts once. Of twins the one that has links is the member.
func (s *survey) take(a Answer) {
	i := slices.IndexFunc(s.answered, func(b Answer) bool { return b.Node == a.Node })
	switch {
	case i < 0:
		s.answered = append(s.answered, a)
	case s.answered[i].Status.Identity == a.Status.Identity:
	case linksUp(a) > linksUp(s.answered[i]):
		s.others, s.answered[i] = append(s.others, s.answered[i]), a
	default:
		s.others = append(s.others, a)
	}
}

func linksUp(a Answer) (n int) {
	for _, m := range a.Status.Members {
		n += count(m.Link == "up")
	}
	return n
}

// election is a node's part in the default election.
func election(a Answer) cluster.GroupStatus { return a.Status.Groups[0] }

// member is how a node sees another one.
func member(a Answer, id cluster.NodeID) (cluster.MemberStatus, bool) {
	i := slices.IndexFunc(a.Status.Members, func(m cluster.MemberStatus) bool { return m.Node == id })
	if i < 0 {
		return cluster.MemberStatus{}, false
	}
	return a.Status.Members[i], true
}

// why is the reason of a silence, to go after where: the address is not said twice.
func (a Answer) why(where string) string { return strings.TrimPrefix(a.Error, where+": ") }

// presence names who does not answer, and what the others know of it.
func (s *survey) presence() {
	mark := len(s.Checks)
	for _, a := range s.answers {
		if a.Status != nil {
			continue
		}
		level := Warn
		switch {
		case a.Node == "" && !slices.ContainsFunc(s.voters, s.silent):
			s.problem(Warn, NoAnswer, "members", a.Addr, "%s; every voter answers elsewhere", a.why(a.Addr)).Mend = "leave that address out, if nobody is to be there"
			continue
		case a.Node == "" || slices.Contains(s.voters, a.Node):
			level = Fail
		case !s.anybodyMisses(a.Node):
			s.sound("members", string(a.Node), "it does not run, and nobody counts it as a voter")
			continue
		}
		name, kind := string(a.Node), NoAnswer
		if a.Addr == "" && !s.anybodySaw(a.Node) {
			kind = NeverSeen
		}
		if name == "" {
			name = a.Addr
		}
		s.problem(level, kind, "members", name, "%s%s", a.why(name), s.seenBy(a.Node))
	}
	if s.since(mark) {
		s.sound("members", "", "all %d answer: %s", len(s.answered), list(s.names()))
	}
}

func (s *survey) names() (ids []cluster.NodeID) {
	for _, a := range s.answered {
		ids = append(ids, a.Node)
	}
	return ids
}

func (s *survey) anybodySaw(id cluster.NodeID) bool {
	return slices.ContainsFunc(s.answered, func(a Answer) bool {
		m, ok := member(a, id)
		return ok && (m.GossipAddr != "" || m.Link != "none")
	})
}

// anybodyMisses reports whether a node that is no voter was there a moment ago.
func (s *survey) anybodyMisses(id cluster.NodeID) bool {
	return slices.ContainsFunc(s.answered, func(a Answer) bool {
		m, ok := member(a, id)
		return ok && (m.Voter || m.Gossip == "alive" || m.Link == "up")
	})
}

// seenBy is what the others' links say of a node that does not answer.
func (s *survey) seenBy(id cluster.NodeID) string {
	var parts []string
	for _, a := range s.answered {
		if m, ok := member(a, id); ok && m.Link != "none" {
			parts = append(parts, fmt.Sprintf("%s has its link %s", a.Node, m.Link))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// clusters names who was asked and belongs to another cluster.
func (s *survey) clusters() {
	for _, a := range s.foreign {
		s.problem(Fail, "wrong-cluster", "clusters", string(a.Node), "it is of cluster %q, and %s of %q: only that one was examined",
			a.Status.Cluster, s.answered[0].Node, s.answered[0].Status.Cluster)
	}
}

// twins names processes that share a name, and not a data directory.
func (s *survey) twins() {
	for _, b := range s.others {
		i := slices.IndexFunc(s.answered, func(a Answer) bool { return a.Node == b.Node })
		a := s.answered[i]
		s.problem(Fail, "name-twice", "names", string(a.Node), "two processes have this name: at %s, up for %s, and at %s, up for %s",
			a.Addr, short(a.Status.Uptime), b.Addr, short(b.Status.Uptime))
	}
}

func short(s cluster.Seconds) time.Duration { return s.Duration().Round(time.Second) }

func list[T ~string](names []T) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return strings.Join(all, ", ")
}

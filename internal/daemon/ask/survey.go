package ask

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/base/words"
)

// survey is a cluster as its nodes see it.
type survey struct {
	Report
	answers    []Answer             // sorted by node
	answered   []Answer             // one for each name
	duplicates []Answer             // further processes of a name that answered
	foreign    []Answer             // of another cluster than the first that answered
	newest     cluster.RecordStatus // the newest record on any node; zero if there is none
	// those of the newest record or, if there is none, all that any node counts; sorted, and
	// without the lost
	voters []cluster.NodeID
	lost   []cluster.NodeID // those declared lost on a node and not readmitted there
}

// Examine asks the nodes at the given addresses, and the members that they know, and reports what
// is wrong with their cluster. It changes nothing. If the user named the addresses, each of them
// must answer.
func (c *Cluster) Examine(ctx context.Context, named bool) (Report, error) {
	var all []Answer
	c.figures = true
	if err := c.walk(ctx, true, func(a Answer) bool {
		all = append(all, a)
		return false
	}); err != nil {
		return Report{}, err
	}
	if !slices.ContainsFunc(all, Answer.answered) {
		return Report{}, noAnswerOf(all)
	}
	return examine(slices.DeleteFunc(slices.Clone(all), func(a Answer) bool {
		// Another answer may name the silent node at this address already.
		sameAddr := func(b Answer) bool { return b.Node != "" && b.via == a.via }
		switch {
		case a.answered():
			return false
		case a.given:
			return !named || slices.ContainsFunc(all, sameAddr)
		}
		return !isMissed(a.Node, all) && !(named && slices.Contains(c.Addrs, a.via))
	})), nil
}

// isMissed reports whether a silent node should answer. Two need not: an observer that has left,
// and a node that answered at another address than the one that others know.
func isMissed(id cluster.NodeID, among []Answer) bool {
	answered := answering(among)
	return find(answered, id) == nil && slices.ContainsFunc(answered, func(a Answer) bool {
		m := a.member(id)
		return m.Node == id && countsOn(m)
	})
}

// countsOn reports whether a node sees another one as a voter or as alive.
func countsOn(m cluster.MemberStatus) bool {
	return m.Voter || m.Gossip == "alive" || m.Link == linkUp
}

// examine reports what is wrong with a cluster, given the answers of all its nodes. At least one
// must have answered.
func examine(answers []Answer) Report {
	s := &survey{answers: slices.Clone(answers)}
	slices.SortStableFunc(s.answers, byName)
	voters := map[cluster.NodeID]bool{}
	for _, a := range s.answers {
		if a.silent() {
			continue
		}
		if len(s.answered) > 0 && s.answered[0].Status.Cluster != a.Status.Cluster {
			s.foreign = append(s.foreign, a)
			continue
		}
		s.add(a)
		for _, id := range a.election().Voters {
			voters[id] = true
		}
		for _, e := range a.Status.Emergencies {
			s.lost = append(s.lost, e.Missing()...)
		}
	}
	if s.newest = newestRecord(s.answered); !s.newest.Accepted.IsZero() {
		clear(voters)
	}
	for _, id := range names(s.newest.Voters) {
		voters[id] = true
	}
	for _, id := range s.lost { // the advice for the emergency covers them
		delete(voters, id)
	}
	s.voters = slices.Sorted(maps.Keys(voters))
	for _, check := range []func(){
		s.findings, s.names, s.votersAgree, s.record, s.presence, s.links, s.datagrams, s.leader,
		s.elections, s.successors, s.observers, s.pauses, s.lease, s.disks, s.versions,
		s.wallClocks, s.eachNode, s.messages,
	} {
		check()
	}
	s.dropDerived()
	return s.Report
}

// add takes in an answer. A node that was asked at two addresses counts once. Of two processes with
// one name, the one with more links is the member.
func (s *survey) add(a Answer) {
	linksUp := func(a *Answer) (n int) {
		for _, m := range a.Status.Members {
			if m.Link == linkUp {
				n++
			}
		}
		return n
	}
	switch b := find(s.answered, a.Node); {
	case b == nil:
		s.answered = append(s.answered, a)
	case b.Status.Identity == a.Status.Identity:
	case linksUp(&a) > linksUp(b):
		s.duplicates, *b = append(s.duplicates, *b), a
	default:
		s.duplicates = append(s.duplicates, a)
	}
}

func (s *survey) isSilent(id cluster.NodeID) bool { return find(s.answered, id) == nil }

func (s *survey) seen(id cluster.NodeID, like func(cluster.MemberStatus) bool) bool {
	return slices.ContainsFunc(s.answered, func(a Answer) bool {
		m := a.member(id)
		return m.Node != "" && like(m)
	})
}

func (s *survey) everSeen(id cluster.NodeID) bool {
	return s.seen(id, func(m cluster.MemberStatus) bool {
		return m.GossipAddr != "" || m.Link != "none"
	})
}

// refuses reports whether one of two nodes must refuse the other, by its own finding.
func (s *survey) refuses(a, b cluster.NodeID) bool {
	return slices.ContainsFunc(s.answered, func(n Answer) bool {
		return slices.ContainsFunc(n.Status.Findings, func(f findings.Finding) bool {
			ends := n.Node == a && f.Peer == b || n.Node == b && f.Peer == a
			return ends && slices.Contains([]Kind{
				findings.DirectoryCopied, findings.DirectoryOutdated, findings.Version, findings.TLS,
			}, f.Kind)
		})
	})
}

// findings reports what the nodes found, a line for each cause. If all nodes concerned answer,
// votersAgree reports differing voters instead, and names reports duplicate names.
func (s *survey) findings() {
	twice := func(id cluster.NodeID) bool { return find(s.duplicates, id) != nil }
	all := slices.Concat(s.answered, s.duplicates, s.foreign)
	for i, a := range all {
		st := *a.Status
		st.Findings = slices.DeleteFunc(slices.Clone(st.Findings), func(f findings.Finding) bool {
			return f.Kind == findings.VotersDiffer && !s.isSilent(f.Peer) && !s.isSilent(a.Node) ||
				f.Kind == findings.NameTwice && (twice(f.Peer) || twice(a.Node))
		})
		all[i].Status = &st
	}
	found := causes(all)
	for _, c := range found {
		told := s.problem(Fail, c.Kind, "finding", c.where, "%s", c.Detail)
		told.Fix = c.Advice
		if key, _, named := strings.Cut(c.Detail, " is "); named && c.Kind == findings.SettingsDiffer {
			told.Why = "with two values of " + key + ", two leaders are possible"
		}
	}
	if len(found) == 0 {
		s.good("findings", "", "no node that answers finds anything wrong with another")
	}
}

// names reports members of other clusters, and duplicate names.
func (s *survey) names() {
	for _, a := range s.foreign {
		s.problem(Fail, findings.WrongCluster, "clusters", string(a.Node),
			"it is of cluster %q, and %s of %q: only that one was examined",
			a.Status.Cluster, s.answered[0].Node, s.answered[0].Status.Cluster)
	}
	for _, b := range s.duplicates {
		a := find(s.answered, b.Node)
		up := func(a Answer) time.Duration { return a.Status.Uptime.Duration().Round(time.Second) }
		s.problem(Fail, findings.NameTwice, "names", string(a.Node), "two processes have this name: "+
			"at %s, up for %s, and at %s, up for %s", a.via, up(*a), b.via, up(b))
	}
}

// sides lists texts in their order, each with the nodes that say it.
func sides(nodes map[string][]cluster.NodeID, format string) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(nodes)) {
		parts = append(parts, fmt.Sprintf(format, what, words.List(nodes[what])))
	}
	return strings.Join(parts, "; ")
}

// dropDerived leaves out what follows from another problem of the report. If every node has found
// nobody, unseen voters are no news. If voters differ, so do the findings about them, a voter that
// one list has may not exist, and messages of nodes without a vote are refused.
func (s *survey) dropDerived() {
	alone := !slices.ContainsFunc(s.answered, func(a Answer) bool {
		return !slices.ContainsFunc(a.Status.Findings, func(f findings.Finding) bool {
			return f.Kind == findings.Alone
		})
	})
	differ, told := false, false
	for _, c := range s.Checks {
		differ = differ || c.Kind == findings.VotersDiffer
		told = told || c.Kind == findings.VotersDiffer && c.Subject == "voters"
	}
	s.Checks = slices.DeleteFunc(s.Checks, func(c Check) bool {
		switch c.Kind {
		case neverSeen:
			return alone || told
		case findings.VotersDiffer:
			return told && c.Subject == "finding"
		case anomaly:
			return differ && strings.HasPrefix(c.What, notEntitled+":")
		}
		return false
	})
}

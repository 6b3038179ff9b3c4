package ask

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/netmesh"
)

// presence reports each node that does not answer, and what the others know of it.
func (s *survey) presence() {
	mark := len(s.Checks)
	nameless := s.nameless()
	for _, a := range s.answers {
		if a.answered() || a.Node == "" && nameless != "" {
			continue
		}
		where := string(a.Node)
		if where == "" {
			where = a.via
		}
		why := strings.TrimPrefix(a.Error, where+": ") // where says the address already
		level, kind := Warn, noAnswer
		switch {
		case a.Node == "" && !slices.ContainsFunc(s.voters, s.isSilent):
			s.problem(Warn, noAnswer, "members", where, "%s; every voter answers elsewhere", why).
				Fix = "leave that address out, if no node is to be there"
			continue
		case a.Node == "" || slices.Contains(s.voters, a.Node):
			level = Fail
		case slices.Contains(s.lost, a.Node):
			s.good("members", where, "it does not run: it was declared lost")
			continue
		case !s.seen(a.Node, countsOn):
			s.good("members", where, "it does not run, and nobody counts it as a voter")
			continue
		}
		cannot := func(b Answer) bool { return b.Node != a.Node && !b.hasLink(a.Node) }
		if !slices.ContainsFunc(s.answered, cannot) {
			s.problem(Warn, noAnswer, "members", where,
				"it runs (link up), but its admin side cannot be asked: %s", why).
				Fix = "name its address with --admin, or give it an admin-addr that others reach"
			continue
		}
		if a.via == "" && !s.everSeen(a.Node) {
			kind = neverSeen
		}
		for _, b := range s.answered {
			if m := b.member(a.Node); m.Node != "" && m.Link != "none" {
				why += fmt.Sprintf("; %s has its link %s", b.Node, m.Link)
			}
		}
		if level == Fail {
			why += nameless
		}
		s.problem(level, kind, "members", where, "%s", why)
	}
	s.goodSince(mark, "members", "", "all %d answer: %s", len(s.answered),
		words.List(nodesOf(s.answered)))
}

// nameless lists the addresses at which nobody answers and no node is known to be, if a voter is
// missing: it may be there. They are reported with that voter.
func (s *survey) nameless() (text string) {
	missing := false
	for _, a := range s.answers {
		missing = missing || a.silent() && slices.Contains(s.voters, a.Node)
		if a.silent() && a.Node == "" {
			text += "; " + a.Error
		}
	}
	if !missing {
		return ""
	}
	return text
}

// votersAgree compares the nodes' lists of voters. Where there is a record, it has the voters.
func (s *survey) votersAgree() {
	lists := map[string][]cluster.NodeID{}
	for _, a := range s.answered {
		counted := slices.DeleteFunc(slices.Sorted(slices.Values(a.election().Voters)),
			func(id cluster.NodeID) bool { return slices.Contains(s.lost, id) })
		if voters := words.List(counted); voters != "" { // one that joins learns them
			lists[voters] = append(lists[voters], a.Node)
		}
	}
	all := fmt.Sprintf("%d: %s", len(s.voters), words.List(s.voters))
	switch {
	case len(lists) > 1 && s.newest.Accepted.IsZero():
		s.problem(Fail, findings.VotersDiffer, "voters", "", "%s", sides(lists, "%[2]s: %[1]s"))
	case len(s.voters)%2 == 0 && len(s.lost) == 0:
		even := s.problem(Warn, evenVoters, "voters", "", "there are %s", all)
		if len(s.voters) == 2 {
			even.Why = "two survive no loss: both are needed"
			even.Fix = "add a third: 'bmqnode voters add NODE'"
		}
	default:
		s.good("voters", "", "%s", all)
	}
}

// record checks that the voters have the newest record, and count.
func (s *survey) record() {
	mark, change := len(s.Checks), ""
	for _, a := range s.answered {
		r := recordOf(a)
		if r.Change != "" {
			change = "; the voters change: " + r.Change
		}
		if len(r.Behind) > 0 {
			s.problem(Warn, recordBehind, "record", words.List(r.Behind), "without %s of %s%s",
				r.Accepted, a.Node, change)
		}
	}
	for _, v := range s.newest.Voters {
		if v.Identity == "" {
			unmet := s.problem(Warn, findings.VoterUncounted, "record", string(v.Node),
				"no leader has met it yet")
			unmet.Why = "a voter counts for no quorum until a leader has met it"
			unmet.Fix = "start it"
		}
	}
	if !s.newest.Accepted.IsZero() {
		s.goodSince(mark, "record", "", "%s is on every voter that answers%s", s.newest.Accepted, change)
	}
	for _, a := range s.answered {
		if others := recordOf(a).Configured; len(others) > 0 {
			s.problem(Warn, votersConfigured, "configuration", string(a.Node), "its voters are %s, and "+
				"the record's %s", words.List(others), words.List(s.voters))
		}
	}
}

// observers warns of members that are no voters while a voter never came, or came from the same
// address: its name may be misspelt.
func (s *survey) observers() {
	for _, a := range s.answered {
		missing := slices.DeleteFunc(slices.Clone(s.voters), func(id cluster.NodeID) bool {
			sharesAddr := func(b Answer) bool {
				addr := b.member(id).MeshAddr
				return addr != "" && addr == b.member(a.Node).MeshAddr
			}
			return !s.isSilent(id) || s.everSeen(id) && !slices.ContainsFunc(s.answered, sharesAddr)
		})
		switch {
		case slices.Contains(s.voters, a.Node), slices.Contains(s.lost, a.Node):
		case len(missing) > 0:
			s.problem(Warn, noVoter, "observers", string(a.Node),
				"it takes part without a vote, while %s is missing", words.List(missing))
		default:
			s.good("observers", string(a.Node), "follows without a vote")
		}
	}
}

// links compares both ends of the link between every two nodes. It reports one line for each node
// that may be the cause.
func (s *survey) links() {
	all, explained := 0, false
	what, level, down := map[pair]string{}, map[pair]Level{}, []pair{}
	for i, a := range s.answered {
		for _, b := range s.answered[i+1:] {
			there, back := linkOf(a, b.Node), linkOf(b, a.Node)
			all++
			if there == linkUp && back == linkUp {
				continue
			}
			if s.refuses(a.Node, b.Node) { // a finding says so
				explained = true
				continue
			}
			at := pair{a.Node, b.Node}
			down, level[at] = append(down, at), Warn // no quorum needs a link between observers
			if slices.Contains(s.voters, a.Node) || slices.Contains(s.voters, b.Node) {
				level[at] = Fail
			}
			oneWay := ""
			if there == linkUp || back == linkUp {
				oneWay = "up one way only: "
			}
			what[at] = fmt.Sprintf("%s%s has it %s; %s has it %s", oneWay, a.Node, there, b.Node, back)
		}
	}
	for _, cause := range stars(down) {
		worst := Warn
		if slices.ContainsFunc(cause.pairs, func(at pair) bool { return level[at] == Fail }) {
			worst = Fail
		}
		s.problem(worst, linkDown, "links", cause.where(), "%s", cause.text(what))
	}
	for _, a := range s.answered {
		if a.Status.Faults != "" {
			s.problem(Warn, linkDown, "faults", string(a.Node), "cut on purpose: %s", a.Status.Faults).
				Fix = "'bmqnode fault heal' ends that"
		}
	}
	if len(down) == 0 && !explained && all > 0 {
		s.good("links", "", "every node reaches every other: %d of %d directions are up",
			2*all, 2*all)
	}
}

// datagrams names the links whose beats do not go as datagrams at one end, although they should.
func (s *survey) datagrams() {
	why := map[pair]string{}
	for i, a := range s.answered {
		for _, b := range s.answered[i+1:] {
			var ends []string
			for _, end := range [][2]Answer{{a, b}, {b, a}} {
				m := end[0].member(end[1].Node)
				if m.Beats == netmesh.BeatsStream && m.BeatsWhy != netmesh.NoDatagrams {
					ends = append(ends, fmt.Sprintf("%s: %s", end[0].Node, m.BeatsWhy))
				}
			}
			if len(ends) > 0 {
				why[pair{a.Node, b.Node}] = strings.Join(ends, ", ")
			}
		}
	}
	for _, cause := range stars(slices.Collect(maps.Keys(why))) {
		s.problem(Warn, datagramsBlocked, "datagrams", cause.where(), "%s", cause.text(why))
	}
}

func linkOf(a Answer, to cluster.NodeID) string {
	m := a.member(to)
	if m.Node == "" || m.Link == "none" {
		return "none: it never heard of it"
	}
	if m.LinkError != "" && m.Link != linkUp {
		return fmt.Sprintf("%s, %s", m.Link, m.LinkError)
	}
	return m.Link
}

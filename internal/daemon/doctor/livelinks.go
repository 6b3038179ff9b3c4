package doctor

import (
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
)

// links looks at the link between every two nodes from both ends.
func (s *survey) links() {
	mark, directions, up := len(s.Checks), 0, 0
	for i, a := range s.answered {
		for _, b := range s.answered[i+1:] {
			there, back := linkOf(a, b.Node), linkOf(b, a.Node)
			directions += 2
			up += count(there == "up", back == "up")
			s.link(a, b, there, back)
		}
	}
	if s.since(mark) && directions > 0 {
		s.sound("links", "", "every node reaches every other: %d of %d directions are up", up, directions)
	}
}

// linkOf is the state of a node's link to another.
func linkOf(a Answer, to cluster.NodeID) string {
	m, ok := member(a, to)
	if !ok || m.Link == "none" {
		return "none: it never heard of it"
	}
	if m.LinkError != "" && m.Link != "up" {
		return fmt.Sprintf("%s, %s", m.Link, m.LinkError)
	}
	return m.Link
}

func count(truths ...bool) (n int) {
	for _, t := range truths {
		if t {
			n++
		}
	}
	return n
}

// link judges one pair. A link between two observers is nobody's quorum.
func (s *survey) link(a, b Answer, there, back string) {
	level := Warn
	if slices.Contains(s.voters, a.Node) || slices.Contains(s.voters, b.Node) {
		level = Fail
	}
	pair := fmt.Sprintf("%s - %s", a.Node, b.Node)
	switch count(there == "up", back == "up") {
	case 1:
		s.problem(level, LinkDown, "links", pair, "up one way only: %s has it %s; %s has it %s", a.Node, there, b.Node, back)
	case 0:
		s.problem(level, LinkDown, "links", pair, "%s has it %s; %s has it %s", a.Node, there, b.Node, back)
	}
}

// longestTrip is the longest smoothed round trip of any link that is up.
func (s *survey) longestTrip() (longest cluster.Seconds, pair string) {
	for _, a := range s.answered {
		for _, m := range a.Status.Members {
			if m.Link == "up" && m.RTT > longest {
				longest, pair = m.RTT, fmt.Sprintf("%s - %s", a.Node, m.Node)
			}
		}
	}
	return longest, pair
}

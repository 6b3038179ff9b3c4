package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// links looks at the link between every two nodes from both ends: a line for each node that
// may be the cause.
func (s *survey) links() {
	all, explained := 0, false
	what, level, down := map[pair]string{}, map[pair]Level{}, []pair{}
	for i, a := range s.answered {
		for _, b := range s.answered[i+1:] {
			there, back := linkOf(a, b.Node), linkOf(b, a.Node)
			all++
			if there == "up" && back == "up" {
				continue
			}
			if s.refuses(a.Node, b.Node) { // the finding says so
				explained = true
				continue
			}
			at := pair{a.Node, b.Node}
			down, level[at] = append(down, at), Warn // no quorum needs a link between two observers
			if slices.Contains(s.voters, a.Node) || slices.Contains(s.voters, b.Node) {
				level[at] = Fail
			}
			oneWay := ""
			if there == "up" || back == "up" {
				oneWay = "up one way only: "
			}
			what[at] = fmt.Sprintf("%s%s has it %s; %s has it %s", oneWay, a.Node, there, b.Node, back)
		}
	}
	for _, cause := range stars(down) {
		worst, parts := Warn, []string{}
		for _, at := range cause.pairs {
			if level[at] == Fail {
				worst = Fail
			}
			text := what[at]
			if len(cause.pairs) > 1 {
				text = fmt.Sprintf("%s - %s: %s", at[0], at[1], text)
			}
			parts = append(parts, text)
		}
		s.problem(worst, LinkDown, "links", cause.where(), "%s", strings.Join(parts, "; "))
	}
	for _, a := range s.answered {
		if faults := a.Status.Faults; faults != "" {
			s.problem(Warn, LinkDown, "faults", string(a.Node), "cut on purpose: %s", faults).
				Fix = "'bmqnode fault heal' ends that"
		}
	}
	if len(down) == 0 && !explained && all > 0 {
		s.good("links", "", "every node reaches every other: %d of %d directions are up",
			2*all, 2*all)
	}
}

// refuses reports whether one of two nodes found that it must refuse the other.
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

// linkOf is the state of a node's link to another.
func linkOf(a Answer, to cluster.NodeID) string {
	m := admin.MemberIn(*a.Status, to)
	if m.Node == "" || m.Link == "none" {
		return "none: it never heard of it"
	}
	if m.LinkError != "" && m.Link != "up" {
		return fmt.Sprintf("%s, %s", m.Link, m.LinkError)
	}
	return m.Link
}

const (
	// tripsInLease is how many of the longest round trips should fit into what is
	// left of a lease.
	tripsInLease = 10
	// lateShare and manyLate: it is no accident if more than manyLate of the renewals
	// come with less than lateShare of the lease left.
	lateShare, manyLate = "0.2", 0.01
)

// lease compares the leader's lease with the round trips, and looks at how late it was
// renewed so far.
func (s *survey) lease() {
	i := slices.IndexFunc(s.answered, func(a Answer) bool { return election(a).Leading })
	if i < 0 || election(s.answered[i]).LeaseLeft == 0 {
		return // nobody leads, or alone and without a lease
	}
	a, mark := s.answered[i], len(s.Checks)
	where, left := string(a.Node), election(a).LeaseLeft.Duration()
	var trip time.Duration
	var pair string
	for _, a := range s.answered {
		for _, m := range a.Status.Members {
			if rtt := m.RTT.Duration(); m.Link == "up" && rtt > trip {
				trip, pair = rtt, fmt.Sprintf("%s - %s", a.Node, m.Node)
			}
		}
	}
	if needed := tripsInLease * trip; needed > left {
		s.problem(Warn, LeaseShort, "lease", where,
			"%s are left of it, and a round trip takes %s (%s): it should be %s at least",
			left.Round(time.Millisecond), trip.Round(time.Microsecond), pair, needed.Round(time.Millisecond))
	}
	renewals := a.Figures["bmqelect_lease_left_at_renewal_ratio_count"]
	late := a.Figures[`bmqelect_lease_left_at_renewal_ratio_bucket{le="`+lateShare+`"}`]
	if late > manyLate*renewals {
		s.problem(Warn, LeaseShort, "lease", where,
			"less than a fifth of it was left at %.0f of %.0f renewals", late, renewals)
	}
	if s.goodSince(mark) {
		s.good("lease", where, "%s left; the longest round trip takes %s",
			left.Round(time.Millisecond), trip.Round(time.Microsecond))
	}
}

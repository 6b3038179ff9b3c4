package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// leader asks whether all nodes know one leader, in one term, who leads indeed.
func (s *survey) leader() {
	views := map[string][]cluster.NodeID{}
	var leading []string
	var first cluster.GroupStatus
	for _, a := range s.answered {
		g := election(a)
		if g.Leading {
			leading = append(leading, fmt.Sprintf("%s in term %d", a.Node, g.Term))
		}
		if g.Leader == "" {
			s.problem(Fail, NoLeader, "leader", string(a.Node), "%s", g.Explanation)
			continue
		}
		first = g
		view := fmt.Sprintf("%s in term %d", g.Leader, g.Term)
		views[view] = append(views[view], a.Node)
	}
	switch {
	case len(leading) > 1:
		s.problem(Fail, LeaderDisputed, "leader", "", "more than one node says that it leads: %s", list(leading))
	case len(views) > 1:
		s.problem(Warn, LeaderDisputed, "leader", "", "the nodes do not agree: %s", opinions(views))
	case len(views) == 1 && len(leading) == 0 && s.silent(first.Leader):
		s.problem(Warn, LeaderDisputed, "leader", "", "%s is followed, and does not answer here", first.Leader)
	case len(views) == 1 && len(leading) == 0:
		s.problem(Warn, LeaderDisputed, "leader", "", "%s is followed, and does not lead any more", first.Leader)
	case len(views) == 1:
		s.sound("leader", "", "%s leads in term %d; all who answer agree", first.Leader, first.Term)
	}
}

// terms warns long before the last one is used.
func (s *survey) terms() {
	for _, a := range s.answered {
		if g := election(a); g.Term > lsn.MaxTerm/2 {
			s.problem(Fail, TermsUsedUp, "terms", string(a.Node), "it is in term %d of at most %d", g.Term, lsn.MaxTerm)
		}
	}
}

func (s *survey) silent(id cluster.NodeID) bool { return !slices.Contains(s.names(), id) }

func opinions(views map[string][]cluster.NodeID) string {
	var parts []string
	for _, view := range slices.Sorted(maps.Keys(views)) {
		parts = append(parts, fmt.Sprintf("%s say %s", list(views[view]), view))
	}
	return strings.Join(parts, "; ")
}

const (
	// tripsInLease is how many of the longest round trips should fit into what is
	// left of a lease.
	tripsInLease = 10
	// lateShare and manyLate: more than manyLate of the renewals with less than
	// lateShare of the lease left are no accident.
	lateShare, manyLate = "0.2", 0.01
)

// lease compares the leader's lease with what the network needs, and looks at how
// late it was renewed so far.
func (s *survey) lease() {
	i := slices.IndexFunc(s.answered, func(a Answer) bool { return election(a).Leading })
	if i < 0 || election(s.answered[i]).LeaseLeft == 0 {
		return // nobody leads, or alone and without a lease
	}
	a := s.answered[i]
	left, mark := election(a).LeaseLeft.Duration(), len(s.Checks)
	trip, pair := s.longestTrip()
	if needed := tripsInLease * trip.Duration(); needed > left {
		s.problem(Warn, LeaseShort, "lease", string(a.Node), "%s are left of it, and a round trip takes %s (%s): it should be %s at least",
			left.Round(time.Millisecond), trip.Duration().Round(time.Microsecond), pair, needed.Round(time.Millisecond))
	}
	renewals := a.Figures["bmqelect_lease_left_at_renewal_ratio_count"]
	late := a.Figures[`bmqelect_lease_left_at_renewal_ratio_bucket{le="`+lateShare+`"}`]
	if late > manyLate*renewals {
		s.problem(Warn, LeaseShort, "lease", string(a.Node), "less than a fifth of it was left at %.0f of %.0f renewals", late, renewals)
	}
	if s.since(mark) {
		s.sound("lease", string(a.Node), "%s left; the longest round trip takes %s", left.Round(time.Millisecond), trip.Duration().Round(time.Microsecond))
	}
}

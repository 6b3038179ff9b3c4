package ask

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// leader checks that all nodes know the same leader and term, and that the leader agrees.
func (s *survey) leader() {
	views := map[string][]cluster.NodeID{}
	var leading []string
	var known cluster.GroupStatus
	var leaderless remarks
	for _, a := range s.answered {
		g := a.election()
		if g.Leading {
			leading = append(leading, fmt.Sprintf("%s in term %d", a.Node, g.Term))
		}
		if g.Leader == "" {
			if !s.shutOut(a.Node) {
				leaderless.add(a.Node, g.Explanation)
			}
			continue
		}
		known = g
		view := fmt.Sprintf("%s in term %d", g.Leader, g.Term)
		views[view] = append(views[view], a.Node)
	}
	for _, r := range leaderless {
		s.problem(Fail, noLeader, "leader", words.List(r.nodes), "%s", r.text)
	}
	switch {
	case len(leading) > 1:
		s.problem(Fail, leaderDisputed, "leader", "",
			"more than one node says that it leads: %s", words.List(leading))
	case len(views) > 1:
		s.problem(Warn, leaderDisputed, "leader", "", "the nodes do not agree: %s",
			sides(views, "%[2]s: %[1]s"))
	case len(views) == 1 && len(leading) == 0:
		why := "does not lead any more"
		if s.isSilent(known.Leader) {
			why = "does not answer here"
		}
		s.problem(Warn, leaderDisputed, "leader", "", "%s is followed, and %s", known.Leader, why)
	case len(views) == 1:
		s.good("leader", "", "%s leads in term %d; all that answer agree", known.Leader, known.Term)
	}
}

// shutOut reports whether all other nodes refuse a node, and one of them knows a leader. A finding
// says that already.
func (s *survey) shutOut(id cluster.NodeID) bool {
	led := false
	for _, a := range s.answered {
		if a.Node != id && !s.refuses(a.Node, id) {
			return false
		}
		led = led || a.election().Leader != ""
	}
	return led
}

// successors warns if nobody but the leader may stand.
func (s *survey) successors() {
	var idle []cluster.NodeID
	for _, id := range s.voters {
		a := find(s.answered, id)
		switch {
		case a == nil, !a.election().Leading && a.election().Candidate && a.election().Unfit == "":
			return // a silent node may stand
		case !a.election().Leading:
			idle = append(idle, id)
		}
	}
	if len(idle) > 0 {
		s.problem(Warn, noSuccessor, "successors", "", "no other node can take over: not a candidate, or not fit: %s",
			words.List(idle))
	}
}

// pauses warns of a pause that some voters do not know of.
func (s *survey) pauses() {
	switch text, inPart := pausesOf(s.answered); {
	case inPart:
		s.problem(Warn, pausedInPart, "pauses", "", "%s", text)
	case text != "":
		s.good("pauses", "", "%s", text)
	}
}

const (
	// tripsInLease is how many round trips, at least, should fit into what is left of a lease.
	tripsInLease = 10
	// More than manyLate of the renewals with less than lateShare of the lease left is no accident.
	lateShare, manyLate = "0.2", 0.01
)

// lease compares the leader's lease with the round trips, and checks how late it was renewed.
func (s *survey) lease() {
	i := slices.IndexFunc(s.answered, func(a Answer) bool { return a.election().Leading })
	if i < 0 || s.answered[i].election().LeaseLeft == 0 {
		return // no leader, or a leader without a lease since it is alone
	}
	a, mark := s.answered[i], len(s.Checks)
	where, left := string(a.Node), a.election().LeaseLeft.Duration()
	var trip time.Duration
	var pair string
	for _, a := range s.answered {
		for _, m := range a.Status.Members {
			if rtt := m.RTT.Duration(); m.Link == linkUp && rtt > trip {
				trip, pair = rtt, fmt.Sprintf("%s - %s", a.Node, m.Node)
			}
		}
	}
	if needed := tripsInLease * trip; needed > left {
		s.problem(Warn, leaseShort, "lease", where,
			"%s are left of it, and a round trip takes %s (%s): it should be %s at least",
			left.Round(time.Millisecond), trip.Round(time.Microsecond), pair, needed.Round(time.Millisecond))
	}
	renewals := a.figures.Values["bmqelect_lease_left_at_renewal_ratio_count"]
	late := a.figures.Values[`bmqelect_lease_left_at_renewal_ratio_bucket{le="`+lateShare+`"}`]
	if late > manyLate*renewals {
		s.problem(Warn, leaseShort, "lease", where,
			"less than a fifth of it was left at %.0f of %.0f renewals", late, renewals)
	}
	s.goodSince(mark, "lease", where, "%s left; the longest round trip takes %s",
		left.Round(time.Millisecond), trip.Round(time.Microsecond))
}

// slowWrite is the longest that a write should take, fsync included; the alert has it too.
const slowWrite = 100 * time.Millisecond

func (s *survey) disks() {
	mark, known := len(s.Checks), 0
	var slowest time.Duration
	for _, a := range s.answered {
		writes := a.figures.Values["bmqelect_store_write_seconds_count"]
		if writes == 0 {
			continue
		}
		known++
		mean := cluster.Seconds(a.figures.Values["bmqelect_store_write_seconds_sum"] / writes).Duration()
		slowest = max(slowest, mean)
		if mean > slowWrite {
			s.problem(Warn, diskSlow, "disks", string(a.Node),
				"keeping a term takes %s on average, fsync included; %s is much", mean.Round(time.Millisecond),
				slowWrite)
		}
	}
	if known > 0 {
		s.goodSince(mark, "disks", "", "keeping a term takes %s at most, on average",
			slowest.Round(10*time.Microsecond))
	}
}

func (s *survey) versions() {
	on := map[string][]cluster.NodeID{}
	for _, a := range s.answered {
		version := cmp.Or(a.Status.Version, "an unknown version")
		on[version] = append(on[version], a.Node)
	}
	if text := sides(on, "%s on %s"); len(on) > 1 {
		s.problem(Warn, versionsDiffer, "versions", "", "%s", text)
	} else {
		s.good("versions", "", "%s", text)
	}
}

// maxSkew is how far wall clocks may be apart before logs are hard to compare.
const maxSkew = time.Second

func (s *survey) wallClocks() {
	known := slices.DeleteFunc(slices.Clone(s.answered), func(a Answer) bool {
		return a.figures.AheadLeast == 0 && a.figures.AheadMost == 0
	})
	if len(known) < 2 {
		return
	}
	// The one that is certainly latest, and the one that is certainly earliest.
	ahead := slices.MaxFunc(known, func(a, b Answer) int {
		return cmp.Compare(a.figures.AheadLeast, b.figures.AheadLeast)
	})
	behind := slices.MinFunc(known, func(a, b Answer) int {
		return cmp.Compare(a.figures.AheadMost, b.figures.AheadMost)
	})
	if apart := ahead.figures.AheadLeast - behind.figures.AheadMost; apart > maxSkew {
		s.problem(Warn, wallClock, "wall clocks", fmt.Sprintf("%s - %s", behind.Node, ahead.Node),
			"that of %s is ahead of that of %s by at least %s",
			ahead.Node, behind.Node, apart.Round(100*time.Millisecond))
		return
	}
	s.good("wall clocks", "", "nothing shows that any two differ by more than %s", maxSkew)
}

// qosKnown is how long a node must have followed a leader before an unmet quality of service
// counts: measuring the link takes time.
const qosKnown = cluster.Seconds(60)

// eachNode checks what each node says of itself alone.
func (s *survey) eachNode() {
	for _, a := range s.answered {
		where, g := string(a.Node), a.election()
		if a.Status.Failure != "" {
			s.problem(Fail, nodeFailed, "nodes", where, "%s", a.Status.Failure)
		}
		if g.Term > lsn.MaxTerm/2 { // long before the last term is used
			s.problem(Fail, termsUsedUp, "terms", where, "it is in term %d of at most %d", g.Term,
				lsn.MaxTerm)
		}
		if g.Unfit != "" {
			s.problem(Warn, notFit, "fitness", where, "%s", g.Unfit)
		}
		if a.Status.AcceptsPlain {
			s.problem(Warn, plainAccepted, "TLS", where, "it accepts members without TLS, for %s by now",
				a.Status.AcceptsPlainFor.Duration().Round(time.Second))
		}
		if g.QoS != nil && g.QoS.Unmet != "" && g.Since > qosKnown {
			s.problem(Warn, qosNotMet, "quality", where, "%s", g.QoS.Unmet)
		}
		for _, e := range a.Status.Emergencies {
			at := e.Time.Format(time.RFC3339)
			if lost := e.Missing(); len(lost) > 0 {
				s.problem(Fail, emergencyRecord, "emergencies", where,
					"%s declared lost at %s and not readmitted", words.List(lost), at)
				continue
			}
			s.good("emergencies", where, "one of %s is over: all were readmitted", at)
		}
		if slices.Contains(s.lost, a.Node) {
			s.problem(Fail, emergencyRecord, "emergencies", where,
				"it runs, and was declared lost: it is not counted").
				Fix = "stop it, and retire its data directory: docs/emergency.md; if it is the new one, " +
				"readmit it on every voter that is left"
		}
		if lost := s.unrecorded(a); len(lost) > 0 {
			s.problem(Fail, emergencyRecord, "emergencies", where,
				"it counts %s, and does not know that others declared them lost", words.List(lost)).
				Fix = "stop it, declare the same there, start it: docs/emergency.md#steps"
		}
	}
}

// unrecorded are the voters that a node counts although an emergency has lost them that should have
// been declared on this node too. Lost nodes and observers have no such record.
func (s *survey) unrecorded(a Answer) (lost []cluster.NodeID) {
	for _, id := range a.election().Voters {
		loses := func(e cluster.EmergencyStatus) bool { return slices.Contains(e.Lost, id) }
		concernsIt := func(b Answer) bool {
			return slices.ContainsFunc(b.Status.Emergencies, func(e cluster.EmergencyStatus) bool {
				return loses(e) && slices.Contains(e.Voters, a.Node) && !slices.Contains(e.Lost, a.Node)
			})
		}
		if !slices.ContainsFunc(a.Status.Emergencies, loses) &&
			slices.ContainsFunc(s.answered, concernsIt) {
			lost = append(lost, id)
		}
	}
	return lost
}

// This anomaly comes with a change of the voters. It is over after changeOver without a new one.
const (
	notEntitled = "not-entitled"
	changeOver  = time.Minute
)

// messages checks counts that a node keeps from its start on.
func (s *survey) messages() {
	mark := len(s.Checks)
	for _, a := range s.answered {
		where := string(a.Node)
		for _, kind := range slices.Sorted(maps.Keys(a.Status.Anomalies)) {
			age, known := a.Status.AnomalyAges[kind]
			over := kind == notEntitled && known && age.Duration() > changeOver
			if n := a.Status.Anomalies[kind]; n > 0 && !over {
				s.problem(Warn, anomaly, "messages", where, "%s: %d since it started", kind, n)
			}
		}
		// No member's connection is closed for these reasons.
		for _, r := range []netmesh.Reason{netmesh.ReasonGarbage, netmesh.ReasonOversized} {
			if n := a.Status.Refused[r.String()]; n > 0 {
				s.problem(Warn, strangers, "messages", where, "%d connections closed for %s since it started",
					n, r)
			}
		}
	}
	s.goodSince(mark, "messages", "", "no anomaly and no stranger since the nodes started")
}

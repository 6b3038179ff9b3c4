package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// qosKnown is for how long a leader must be followed before what is not met counts: at first
// the link is not known.
const qosKnown = cluster.Seconds(60)

// eachNode looks at what a node says of itself alone.
func (s *survey) eachNode() {
	for _, a := range s.answered {
		where := string(a.Node)
		if a.Status.Failure != "" {
			s.problem(Fail, NodeFailed, "nodes", where, "%s", a.Status.Failure)
		}
		if g := election(a); g.Term > lsn.MaxTerm/2 { // long before the last one is used
			s.problem(Fail, TermsUsedUp, "terms", where, "it is in term %d of at most %d", g.Term,
				lsn.MaxTerm)
		}
		if a.Status.AcceptsPlain {
			s.problem(Warn, PlainAccepted, "TLS", where, "it accepts members without TLS, for %s by now",
				a.Status.AcceptsPlainFor.Duration().Round(time.Second))
		}
		if q := election(a).QoS; q != nil && q.Unmet != "" && election(a).Since > qosKnown {
			s.problem(Warn, QoSNotMet, "quality", where, "%s", q.Unmet)
		}
		for _, e := range a.Status.Emergencies {
			if lost := e.Missing(); len(lost) > 0 {
				s.problem(Fail, EmergencyRecord, "emergencies", where,
					"%s declared lost at %s and not readmitted", words.List(lost), e.Time.Format(time.RFC3339))
				continue
			}
			s.good("emergencies", where, "one of %s is over: all were readmitted",
				e.Time.Format(time.RFC3339))
		}
		if slices.Contains(s.lost, a.Node) {
			s.problem(Fail, EmergencyRecord, "emergencies", where,
				"it runs, and was declared lost: it is not counted").
				Fix = "stop it, and retire its data directory: docs/emergency.md; if it is the new one, " +
				"readmit it on every voter that is left"
		}
		if lost := s.unrecorded(a); len(lost) > 0 {
			s.problem(Fail, EmergencyRecord, "emergencies", where,
				"it counts %s, and does not know that others declared them lost", words.List(lost)).
				Fix = "stop it, declare the same there, start it: docs/emergency.md#steps"
		}
	}
}

// unrecorded are the voters that a node counts although an emergency that was to be declared
// on it, too, has lost them. Nodes that were lost themselves, and observers, have no record.
func (s *survey) unrecorded(a Answer) (lost []cluster.NodeID) {
	for _, id := range election(a).Voters {
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

// findings tells what nodes found, a line for each cause. Voters that differ are told by
// votersAgree, and a name that two processes have by names, if all that it takes answer.
func (s *survey) findings() {
	var statuses []*cluster.Status
	for _, a := range slices.Concat(s.answered, s.duplicates, s.foreign) {
		st := *a.Status
		st.Findings = slices.DeleteFunc(slices.Clone(st.Findings), func(f findings.Finding) bool {
			return f.Kind == findings.VotersDiffer && !s.silent(f.Peer) && !s.silent(st.Node) ||
				f.Kind == findings.NameTwice && (s.twice(f.Peer) || s.twice(st.Node))
		})
		statuses = append(statuses, &st)
	}
	causes := Causes(statuses)
	for _, c := range causes {
		told := s.problem(Fail, c.Kind, "finding", c.Where, "%s", c.Detail)
		told.Fix = c.Advice
		if key, _, named := strings.Cut(c.Detail, " is "); named && c.Kind == findings.SettingsDiffer {
			told.Why = "with two values of " + key + ", two leaders are possible"
		}
	}
	if len(causes) == 0 {
		s.good("findings", "", "no node that answers finds anything wrong with another")
	}
}

// twice reports whether two processes of that name answered.
func (s *survey) twice(id cluster.NodeID) bool { return slices.Contains(nodes(s.duplicates), id) }

// slowWrite is the most that a write to the state should take, fsync included, as the
// alert has it.
const slowWrite = 100 * time.Millisecond

func (s *survey) disks() {
	mark, known := len(s.Checks), 0
	var slowest time.Duration
	for _, a := range s.answered {
		writes := a.Figures["bmqelect_store_write_seconds_count"]
		if writes == 0 {
			continue
		}
		known++
		mean := cluster.Seconds(a.Figures["bmqelect_store_write_seconds_sum"] / writes).Duration()
		slowest = max(slowest, mean)
		if mean > slowWrite {
			s.problem(Warn, DiskSlow, "disks", string(a.Node),
				"keeping a term takes %s on average, fsync included; %s is much", mean.Round(time.Millisecond),
				slowWrite)
		}
	}
	if known > 0 && s.goodSince(mark) {
		s.good("disks", "", "keeping a term takes %s at most, on average",
			slowest.Round(10*time.Microsecond))
	}
}

func (s *survey) versions() {
	on := map[string][]cluster.NodeID{}
	for _, a := range s.answered {
		version := cmp.Or(a.Status.Version, "an unknown version")
		on[version] = append(on[version], a.Node)
	}
	if len(on) > 1 {
		s.problem(Warn, VersionsDiffer, "versions", "", "%s", sides(on, "%s on %s"))
		return
	}
	s.good("versions", "", "%s", sides(on, "%s on %s"))
}

// maxSkew is what wall clocks may surely be apart before logs are hard to compare.
const maxSkew = time.Second

func (s *survey) wallClocks() {
	known := slices.DeleteFunc(slices.Clone(s.answered), func(a Answer) bool {
		return a.AheadLeast == 0 && a.AheadMost == 0
	})
	if len(known) < 2 {
		return
	}
	// The one that is surely latest, and the one that is surely earliest.
	ahead := slices.MaxFunc(known, func(a, b Answer) int { return int(a.AheadLeast - b.AheadLeast) })
	behind := slices.MinFunc(known, func(a, b Answer) int { return int(a.AheadMost - b.AheadMost) })
	if apart := ahead.AheadLeast - behind.AheadMost; apart > maxSkew {
		s.problem(Warn, WallClock, "wall clocks", fmt.Sprintf("%s - %s", behind.Node, ahead.Node),
			"that of %s is ahead of that of %s by at least %s",
			ahead.Node, behind.Node, apart.Round(100*time.Millisecond))
		return
	}
	s.good("wall clocks", "", "nothing shows that any two differ by more than %s", maxSkew)
}

// The anomaly of voters that differ belongs to a change of the voters: it is over when
// it has not come for changeOver.
const (
	notEntitled = "not-entitled"
	changeOver  = time.Minute
)

// messages looks at counts since the start of each node: they stay until it restarts.
func (s *survey) messages() {
	mark := len(s.Checks)
	for _, a := range s.answered {
		where := string(a.Node)
		for _, kind := range slices.Sorted(maps.Keys(a.Status.Anomalies)) {
			age, known := a.Status.AnomalyAges[kind]
			over := kind == notEntitled && known && age.Duration() > changeOver
			if n := a.Status.Anomalies[kind]; n > 0 && !over {
				s.problem(Warn, Anomaly, "messages", where, "%s: %d since it started", kind, n)
			}
		}
		// Connections of members are never closed for these reasons.
		for _, r := range []netmesh.Reason{netmesh.ReasonGarbage, netmesh.ReasonOversized} {
			if n := a.Status.Refused[r.String()]; n > 0 {
				s.problem(Warn, Strangers, "messages", where, "%d connections closed for %s since it started",
					n, r)
			}
		}
	}
	if s.goodSince(mark) {
		s.good("messages", "", "no anomaly and no stranger since the nodes started")
	}
}

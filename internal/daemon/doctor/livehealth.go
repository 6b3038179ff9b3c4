package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/netmesh"
)

func (s *survey) failures() {
	for _, a := range s.answered {
		if a.Status.Failure != "" {
			s.problem(Fail, NodeFailed, "nodes", string(a.Node), "%s", a.Status.Failure)
		}
	}
}

// findings merges what the two ends of a pair found: one line for both. Voters that
// differ are told once for all, if both ends answer.
func (s *survey) findings() {
	type key struct {
		kind findings.Kind
		pair string
	}
	known := map[key]bool{}
	for _, a := range slices.Concat(s.answered, s.others, s.foreign) {
		for _, f := range a.Status.Findings {
			ends := []string{string(a.Node), string(f.Peer)}
			slices.Sort(ends)
			k := key{f.Kind, strings.Join(ends, " - ")}
			told := f.Kind == findings.VotersDiffer && slices.Contains(s.names(), f.Peer) && slices.Contains(s.names(), a.Node)
			if known[k] || told {
				continue
			}
			known[k] = true
			s.problem(Fail, Kind(f.Kind), "finding", k.pair, "%s", f.Detail).Mend = f.Advice
		}
	}
	if len(known) == 0 {
		s.sound("findings", "", "no node finds anything wrong with another")
	}
}

// votersCounted compares the lists by which nodes elect.
func (s *survey) votersCounted() {
	lists := map[string][]cluster.NodeID{}
	for _, a := range s.answered {
		voters := slices.Sorted(slices.Values(election(a).Voters))
		lists[list(voters)] = append(lists[list(voters)], a.Node)
	}
	if id, lone := s.changing(); lone {
		s.change(id)
		return
	}
	if len(lists) > 1 {
		var parts []string
		for _, l := range slices.Sorted(maps.Keys(lists)) {
			parts = append(parts, fmt.Sprintf("%s: %s", list(lists[l]), l))
		}
		s.problem(Fail, "voters-differ", "voters", "", "%s", strings.Join(parts, "; "))
		return
	}
	s.parity(len(s.voters), list(s.voters))
}

// changing is the only voter in which the nodes' lists differ, if that is all.
func (s *survey) changing() (id cluster.NodeID, lone bool) {
	differ := 0
	for _, v := range s.voters {
		if by := s.countedBy(v); len(by) < len(s.answered) {
			id = v
			differ++
		}
	}
	return id, differ == 1
}

// countedBy are the nodes that count a voter.
func (s *survey) countedBy(voter cluster.NodeID) (ids []cluster.NodeID) {
	for _, a := range s.answered {
		if slices.Contains(election(a).Voters, voter) {
			ids = append(ids, a.Node)
		}
	}
	return ids
}

// change tells how far a change of one voter is, and what is next.
func (s *survey) change(id cluster.NodeID) {
	by := s.countedBy(id)
	rest := slices.DeleteFunc(s.names(), func(n cluster.NodeID) bool { return slices.Contains(by, n) })
	what := fmt.Sprintf("%s is added or removed: %s count it, %s do not", id, list(by), list(rest))
	const see = "; docs/operations.md#changing-the-voters"
	switch {
	case s.silent(id):
		s.problem(Fail, "voters-differ", "voters", string(id), "%s; and it does not answer", what).Mend =
			"start it before any other node is restarted" + see
	case len(by) == 1 && by[0] == id && len(rest) > 1:
		s.problem(Warn, "voters-differ", "voters", string(id), "nobody but %s itself counts it", id).Mend =
			"if it was removed, stop it; if it is new, give the others the new list and restart them one by one, the leader last" + see
	default:
		s.problem(Warn, "voters-differ", "voters", string(id), "%s", what).Mend =
			"give the rest the new list and restart them one by one, the leader last" + see
	}
}

// parity warns of an even number of voters.
func (r *Report) parity(count int, names string) {
	if count%2 == 0 {
		r.problem(Warn, EvenVoters, "voters", "", "there are %d: %s", count, names)
		return
	}
	r.sound("voters", "", "%d: %s", count, names)
}

// observers warns of members that are no voters if a voter never came: one may be
// the other, misspelt.
func (s *survey) observers() {
	for _, a := range s.answered {
		if slices.Contains(s.voters, a.Node) {
			continue
		}
		if missing := s.missing(); len(missing) > 0 {
			s.problem(Warn, NoVoter, "observers", string(a.Node), "it takes part without a vote, while %s never came", list(missing))
			continue
		}
		s.sound("observers", string(a.Node), "follows without a vote")
	}
}

// missing are the voters that nobody has ever seen.
func (s *survey) missing() (ids []cluster.NodeID) {
	for _, id := range s.voters {
		if s.silent(id) && !s.anybodySaw(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// slowWrite is the time that a write to the state may take, fsync included, as the
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
			s.problem(Warn, DiskSlow, "disks", string(a.Node), "keeping a term takes %s on average, fsync included; %s is much", mean.Round(time.Millisecond), slowWrite)
		}
	}
	if known > 0 && s.since(mark) {
		s.sound("disks", "", "keeping a term takes %s at most, on average", slowest.Round(10*time.Microsecond))
	}
}

func (s *survey) versions() {
	by := map[string][]cluster.NodeID{}
	for _, a := range s.answered {
		by[a.Status.Version] = append(by[a.Status.Version], a.Node)
	}
	if len(by) == 1 {
		s.sound("versions", "", "all run %s", orUnknown(s.answered[0].Status.Version))
		return
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s on %s", orUnknown(v), list(by[v])))
	}
	s.problem(Warn, VersionsDiffer, "versions", "", "%s", strings.Join(parts, "; "))
}

func orUnknown(version string) string {
	if version == "" {
		return "an unknown version"
	}
	return version
}

// maxSkew is what wall clocks may surely be apart before logs are hard to compare.
const maxSkew = time.Second

func (s *survey) wallClocks() {
	known := slices.DeleteFunc(slices.Clone(s.answered), func(a Answer) bool { return a.AheadLeast == 0 && a.AheadMost == 0 })
	if len(known) < 2 {
		return
	}
	// The one that is surely latest, and the one that is surely earliest.
	ahead := slices.MaxFunc(known, func(a, b Answer) int { return int(a.AheadLeast - b.AheadLeast) })
	behind := slices.MinFunc(known, func(a, b Answer) int { return int(a.AheadMost - b.AheadMost) })
	if apart := ahead.AheadLeast - behind.AheadMost; apart > maxSkew {
		s.problem(Warn, WallClock, "wall clocks", fmt.Sprintf("%s - %s", behind.Node, ahead.Node),
			"that of %s is ahead of that of %s by at least %s", ahead.Node, behind.Node, apart.Round(100*time.Millisecond))
		return
	}
	s.sound("wall clocks", "", "nothing shows that any two differ by more than %s", maxSkew)
}

func (s *survey) emergencies() {
	for _, a := range s.answered {
		for _, e := range a.Status.Emergencies {
			if gone := e.Missing(); len(gone) > 0 {
				s.problem(Fail, EmergencyRecord, "emergencies", string(a.Node), "%s declared lost at %s and not readmitted", list(gone), e.Time.Format(time.RFC3339))
				continue
			}
			s.sound("emergencies", string(a.Node), "one of %s is over: all were readmitted", e.Time.Format(time.RFC3339))
		}
	}
}

// strange are the reasons for which connections of members are never closed.
var strange = []netmesh.Reason{netmesh.ReasonGarbage, netmesh.ReasonOversized}

// notEntitled is the anomaly of voters that differ. It belongs to a change of the
// voters, and is over when it has not come for changeOver.
const (
	notEntitled = "not-entitled"
	changeOver  = time.Minute
)

// overBy reports whether what caused an anomaly is over, by a node's account.
func overBy(a Answer, kind string) bool {
	age, known := a.Status.AnomalyAges[kind]
	return kind == notEntitled && known && age.Duration() > changeOver
}

// oddities are counts since the start of each node: they stay until it restarts.
func (s *survey) oddities() {
	mark := len(s.Checks)
	for _, a := range s.answered {
		for _, kind := range slices.Sorted(maps.Keys(a.Status.Anomalies)) {
			if n := a.Status.Anomalies[kind]; n > 0 && !overBy(a, kind) {
				s.problem(Warn, Anomaly, "messages", string(a.Node), "%s: %d since it started", kind, n)
			}
		}
		for _, r := range strange {
			if n := a.Status.Refused[r.String()]; n > 0 {
				s.problem(Warn, Strangers, "messages", string(a.Node), "%d connections closed for %s since it started", n, r)
			}
		}
	}
	if s.since(mark) {
		s.sound("messages", "", "no odd message and no stranger since the nodes started")
	}
}

package incident

import (
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
)

const (
	// ignoredOffset is a difference of clocks that changes nothing.
	ignoredOffset = 50 * time.Millisecond
	// newest is how many moments of the same kind are compared.
	newest = 50
	// sameMoment is within how long of each other the ends of a link see it come up.
	sameMoment = 200 * time.Millisecond
)

// compareClocks puts all records on the clock of the first source. It goes from the sources
// whose clocks are known to those that saw the same moments.
func (in *Incident) compareClocks() {
	known := []*Source{&in.sources[0]}
	for i := 0; i < len(known); i++ {
		for j := range in.sources {
			s := &in.sources[j]
			ahead, ok := offset(known[i], s)
			if !ok || slices.Contains(known, s) {
				continue
			}
			known = append(known, s)
			if ahead.Abs() > ignoredOffset {
				in.Clocks[s.Node] = ahead
				for k := range s.Records {
					s.Records[k].Time = s.Records[k].Time.Add(-ahead)
				}
			}
		}
	}
	for i := range in.sources {
		if s := &in.sources[i]; !slices.Contains(known, s) {
			in.doubt("the clock of %s cannot be compared: it is taken to be right", s.Node)
		}
	}
}

// offset is how much the clock of b is ahead of that of a; false if nothing tells.
func offset(a, b *Source) (ahead time.Duration, ok bool) {
	var diffs []time.Duration
	there := moments(b, a.Node)
	for what, times := range moments(a, b.Node) {
		others := there[what]
		for _, at := range times[max(len(times)-newest, 0):] {
			for _, other := range others[max(len(others)-newest, 0):] {
				diffs = append(diffs, other.Sub(at))
			}
		}
	}
	return densest(diffs)
}

// moments are when a node saw what a peer saw at nearly the same time, by what that was: the
// link between two processes of theirs came up, or one was elected and the other followed it.
func moments(s *Source, peer string) map[string][]time.Time {
	all := map[string][]time.Time{}
	for _, r := range s.Records {
		elected := r.Leader == s.Node && r.Reason == "ELECTED"
		found := r.Leader == peer && r.Reason == "LEADER_FOUND"
		what := ""
		switch {
		case r.Kind == recording.LinkUp && r.Peer == peer:
			boots := map[string]uint64{s.Node: r.Boot, peer: r.PeerBoot}
			what = fmt.Sprint(boots) // in the order of the names, so the same at both ends
		case r.Kind == recording.Transition && (elected || found):
			what = fmt.Sprint(r.Group, r.Leader, r.Term)
		default:
			continue
		}
		all[what] = append(all[what], r.Time)
	}
	return all
}

// densest is the difference near which most are: which time on one side belongs to which on
// the other is not known, and of all pairs only the right ones agree. Among equals the one
// nearest to 0 counts.
func densest(diffs []time.Duration) (best time.Duration, ok bool) {
	slices.Sort(diffs)
	most, first := 0, 0
	for i, d := range diffs {
		for d-diffs[first] > sameMoment {
			first++
		}
		middle := diffs[(first+i)/2]
		if n := i - first + 1; n > most || n == most && middle.Abs() < best.Abs() {
			most, best = n, middle
		}
	}
	return best, most > 0
}

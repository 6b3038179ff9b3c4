package incident

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// ignoredOffset is a difference of clocks that changes nothing.
const ignoredOffset = 50 * time.Millisecond

// compareClocks puts all records on the clock of the first source. Two clocks are compared
// by what both nodes saw at nearly the same time: the link between them comes up, and the
// one follows the other in a term.
func (in *inference) compareClocks() {
	known := []*Source{&in.sources[0]}
	for todo := true; todo; {
		todo = false
		for i := range in.sources {
			s := &in.sources[i]
			if slices.Contains(known, s) {
				continue
			}
			for _, k := range known {
				if ahead, ok := offset(k, s); ok {
					shift(s, ahead)
					if ahead.Abs() > ignoredOffset {
						in.Clocks[s.Node] = ahead
					}
					known, todo = append(known, s), true
					break
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

// shift takes from all times how much the clock is ahead.
func shift(s *Source, ahead time.Duration) {
	if ahead.Abs() <= ignoredOffset {
		return
	}
	for i := range s.Records {
		s.Records[i].Time = s.Records[i].Time.Add(-ahead)
	}
}

// offset is how much the clock of b is ahead of that of a; false if nothing tells.
func offset(a, b *Source) (ahead time.Duration, ok bool) {
	type start struct {
		one, other uint64 // boots of a and b
	}
	links := func(s, peer *Source, key func(r *recording.Record) start) map[start][]time.Time {
		all := map[start][]time.Time{}
		for i := range s.Records {
			if r := &s.Records[i]; r.Kind == recording.LinkUp && r.Peer == peer.Node {
				all[key(r)] = append(all[key(r)], r.Time)
			}
		}
		return all
	}
	here := links(a, b, func(r *recording.Record) start { return start{r.Boot, r.PeerBoot} })
	there := links(b, a, func(r *recording.Record) start { return start{r.PeerBoot, r.Boot} })
	var diffs []time.Duration
	for k, times := range here {
		others := there[k]
		for _, at := range times[max(len(times)-newestLinks, 0):] {
			for _, other := range others[max(len(others)-newestLinks, 0):] {
				diffs = append(diffs, other.Sub(at))
			}
		}
	}
	diffs = append(diffs, following(a, b)...)
	for _, d := range following(b, a) {
		diffs = append(diffs, -d)
	}
	return densest(diffs)
}

const (
	// newestLinks is how many times that a link came up are compared.
	newestLinks = 50
	// sameMoment is within how long of each other the ends of a link see it come up.
	sameMoment = 200 * time.Millisecond
)

// densest is the difference near which most are: which time on one side belongs to which on
// the other is not known, and of all pairs the right ones alone agree. Of as many the one
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

// following is how long after a node was elected, each by its own clock, another followed it.
func following(leader, follower *Source) (diffs []time.Duration) {
	type leadership struct {
		group string
		term  uint64
	}
	elected := map[leadership]time.Time{}
	for _, r := range leader.Records {
		if r.Kind == recording.Transition && r.Leader == leader.Node && r.Reason == "ELECTED" {
			elected[leadership{r.Group, r.Term}] = r.Time
		}
	}
	for _, r := range follower.Records {
		at, ok := elected[leadership{r.Group, r.Term}]
		if ok && r.Kind == recording.Transition && r.Leader == leader.Node && r.Reason == "LEADER_FOUND" {
			diffs = append(diffs, r.Time.Sub(at))
		}
	}
	return diffs
}

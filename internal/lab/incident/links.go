package incident

import (
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// loss is a time without a link, as one end saw it.
type loss struct {
	from, to time.Time
	why      string
}

// findCuts finds the links that were lost although both processes worked, and adds the
// steps that follow, as few as possible.
func (in *Incident) findCuts() {
	var cuts, resets, heals []Step
	for i, a := range in.nodes {
		for _, b := range in.nodes[i+1:] {
			for _, s := range in.outages(a, b) {
				switch {
				case s.Do == "heal":
					heals = append(heals, s)
				case s.Reset:
					resets = append(resets, s)
				default:
					cuts = append(cuts, s)
				}
			}
		}
	}
	in.all = slices.Concat(in.all, join(cuts, sameCut), join(resets, sameCut), join(heals, sameHeal))
}

// Within these times of each other, what links lost or had back is one step. Real processes
// dial again after up to two seconds.
const (
	sameCut  = time.Second
	sameHeal = 2500 * time.Millisecond
)

// join makes one step of those that follow the first of them within a time.
func join(steps []Step, within time.Duration) (all []Step) {
	slices.SortStableFunc(steps, func(a, b Step) int { return a.At.Compare(b.At) })
	for _, s := range steps {
		if len(all) == 0 || s.At.Sub(all[len(all)-1].At) > within {
			all = append(all, s)
			continue
		}
		last := &all[len(all)-1]
		last.Pairs = slices.Concat(last.Pairs, s.Pairs)
		if !strings.Contains(last.Why, s.Why) {
			last.Why += "; " + s.Why
		}
	}
	return all
}

// losses are the times without a link to a peer by a node's own recording.
func (in *Incident) losses(node, peer string) (all []loss) {
	for _, r := range in.source(node).Records {
		open := len(all) > 0 && all[len(all)-1].to.Equal(forever)
		switch {
		case open && (r.Kind == recording.Started || r.Kind == recording.LinkUp && r.Peer == peer):
			all[len(all)-1].to = r.Time
		case r.Kind == recording.LinkDown && r.Peer == peer && !open:
			all = append(all, loss{r.Time, forever, r.Why})
		}
	}
	return all
}

// outages are when packets between two nodes vanished, or connections broke, and when links came
// back, by what both ends saw of the link.
func (in *Incident) outages(a, b string) (all []Step) {
	here, there := in.losses(a, b), in.losses(b, a)
	for _, l := range here {
		other := loss{from: l.from, to: l.to} // it noticed nothing
		i := slices.IndexFunc(there, func(other loss) bool {
			return other.from.Sub(l.from).Abs() <= in.silence+soon
		})
		if i >= 0 {
			other = there[i]
			there = slices.Delete(there, i, i+1)
		}
		all = in.addOutage(all, a, b, l, other)
	}
	for _, l := range there {
		all = in.addOutage(all, b, a, l, loss{from: l.from, to: l.to})
	}
	return all
}

// What an outage follows from.
const (
	bothWays = "both ends worked, and heard nothing of each other"
	oneWay   = "both ends worked; one heard nothing, the other heard it say goodbye"
	broke    = "both ends worked, and the connection broke"
)

// addOutage adds an outage unless the end or a pause of a process explains the loss. An end
// that gives up hears nothing: the way to it is cut. The other end then hears its goodbye,
// if the way to that one is open.
func (in *Incident) addOutage(all []Step, a, b string, here, there loss) []Step {
	from, to := earlier(here.from, there.from), earlier(here.to, there.to)
	hither, thither := scenario.Pair{From: id(b), To: id(a)}, scenario.Pair{From: id(a), To: id(b)}
	cut := Step{At: from, Do: "cut", Pairs: []scenario.Pair{hither, thither}, Why: bothWays}
	worked := func(from, to time.Time) bool { return in.worked(a, from, to) && in.worked(b, from, to) }
	switch {
	case here.why == "timeout" || there.why == "timeout":
		cut.At = from.Add(-in.silence)
		if there.why == "goodbye" {
			cut.Pairs, cut.Why = []scenario.Pair{hither}, oneWay
		} else if here.why == "goodbye" {
			cut.Pairs, cut.Why = []scenario.Pair{thither}, oneWay
		}
		if !worked(cut.At, here.from) {
			return all
		}
	case here.why == "goodbye", here.why == "local",
		!worked(here.from.Add(-soon), here.from.Add(soon)):
		return all // one end closed it, or its process ended
	case to.Sub(from) < soon:
		in.doubt("the link between %s and %s broke (%s) at %s, and came back at once",
			a, b, here.why, from.Format(clockTime))
		return all
	default:
		cut.Reset, cut.Why = true, broke
	}
	return append(all, cut, Step{At: to.Add(-dialTime), Do: "heal", Pairs: cut.Pairs,
		Why: "the links came back"}) // after every window if they did not
}

func id(node string) scenario.NodeID { return scenario.NodeID(node) }

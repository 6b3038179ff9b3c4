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
	from, to time.Time // to is zero if it goes on
	why      string
}

// outage is a time in which packets between two nodes vanished, or connections broke.
type outage struct {
	from, to time.Time // to is zero if it goes on
	pairs    []scenario.Pair
	reset    bool
	why      string
}

// findCuts finds the links that were lost although both processes worked, and adds the
// steps that follow.
func (in *inference) findCuts() {
	var all []outage
	for i, a := range in.nodes {
		for _, b := range in.nodes[i+1:] {
			all = append(all, in.outages(a, b)...)
		}
	}
	in.stepsOf(all)
}

// losses are the times without a link to a peer by a node's own recording.
func (in *inference) losses(node, peer string) (all []loss) {
	s := in.source(node)
	if s == nil {
		return nil
	}
	for _, r := range s.Records {
		open := len(all) > 0 && all[len(all)-1].to.IsZero()
		switch {
		case open && (r.Kind == recording.Started || r.Kind == recording.LinkUp && r.Peer == peer):
			all[len(all)-1].to = r.Time
		case r.Kind == recording.LinkDown && r.Peer == peer && !open:
			all = append(all, loss{from: r.Time, why: r.Why})
		}
	}
	return all
}

// outages joins what both ends saw of the link between two nodes.
func (in *inference) outages(a, b string) (all []outage) {
	here, there := in.losses(a, b), in.losses(b, a)
	taken := make([]bool, len(there))
	for _, l := range here {
		var other *loss
		for i := range there {
			if !taken[i] && there[i].from.Sub(l.from).Abs() <= in.silence+soon {
				taken[i], other = true, &there[i]
				break
			}
		}
		all = in.addOutage(all, a, b, &l, other)
	}
	for i := range there {
		if !taken[i] {
			all = in.addOutage(all, b, a, &there[i], nil)
		}
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
func (in *inference) addOutage(all []outage, a, b string, here, there *loss) []outage {
	o := outage{from: here.from, to: here.to}
	silent := func(l *loss) bool { return l != nil && l.why == "timeout" }
	if there != nil && there.from.Before(o.from) {
		o.from = there.from
	}
	if there != nil && !there.to.IsZero() && (o.to.IsZero() || there.to.Before(o.to)) {
		o.to = there.to
	}
	goodbye := func(l *loss) bool { return l != nil && l.why == "goodbye" }
	hither, thither := scenario.Pair{From: id(b), To: id(a)}, scenario.Pair{From: id(a), To: id(b)}
	worked := func(from, to time.Time) bool { return in.worked(a, from, to) && in.worked(b, from, to) }
	switch {
	case silent(here) || silent(there):
		o.from = o.from.Add(-in.silence)
		o.pairs, o.why = []scenario.Pair{hither, thither}, bothWays
		if goodbye(there) {
			o.pairs, o.why = []scenario.Pair{hither}, oneWay
		} else if goodbye(here) {
			o.pairs, o.why = []scenario.Pair{thither}, oneWay
		}
		if !worked(o.from, here.from) {
			return all
		}
	case here.why == "goodbye", here.why == "local",
		!worked(here.from.Add(-soon), here.from.Add(soon)):
		return all // one end closed it, or its process ended
	case !o.to.IsZero() && o.to.Sub(o.from) < soon:
		in.doubt("the link between %s and %s broke (%s) at %s, and came back at once",
			a, b, here.why, o.from.Format(clockTime))
		return all
	default:
		o.pairs, o.reset, o.why = []scenario.Pair{hither, thither}, true, broke
	}
	return append(all, o)
}

func id(node string) scenario.NodeID { return scenario.NodeID(node) }

// Within these times of each other, what links lost or had back is one step. Real processes
// dial again after up to two seconds.
const (
	sameCut  = time.Second
	sameHeal = 2500 * time.Millisecond
)

// stepsOf makes as few steps as possible of outages.
func (in *inference) stepsOf(all []outage) {
	byTime := func(a, b outage) int { return a.from.Compare(b.from) }
	slices.SortStableFunc(all, byTime)
	for _, reset := range []bool{false, true} {
		var cut *Step
		for _, o := range all {
			switch {
			case o.reset != reset:
			case cut != nil && o.from.Sub(cut.At) <= sameCut:
				cut.Pairs = append(cut.Pairs, o.pairs...)
				if !strings.Contains(cut.Why, o.why) {
					cut.Why += "; " + o.why
				}
			default:
				in.step(Step{At: o.from, Do: "cut", Pairs: o.pairs, Reset: reset, Why: o.why})
				cut = &in.all[len(in.all)-1]
			}
		}
	}
	var heals []Step
	for _, o := range all {
		if !o.to.IsZero() {
			heals = append(heals, Step{At: o.to.Add(-dialTime), Do: "heal", Pairs: o.pairs,
				Why: "the links came back"})
		}
	}
	slices.SortStableFunc(heals, func(a, b Step) int { return a.At.Compare(b.At) })
	for i, h := range heals {
		if last := len(in.all) - 1; i > 0 && h.At.Sub(in.all[last].At) <= sameHeal {
			in.all[last].Pairs = append(in.all[last].Pairs, h.Pairs...)
		} else {
			in.step(h)
		}
	}
}

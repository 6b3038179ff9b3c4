package remote

import (
	"context"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/doctor"
)

// Examine asks the nodes at the given addresses, and the members that these know, and
// examines what they say. If the user named the addresses, each of them must answer.
func (c *Cluster) Examine(ctx context.Context, named bool) (doctor.Report, error) {
	var all []Answer
	c.figures = true
	if err := c.walk(ctx, true, func(a Answer) bool {
		all = append(all, a)
		return false
	}); err != nil {
		return doctor.Report{}, err
	}
	if !slices.ContainsFunc(all, func(a Answer) bool { return a.Status != nil }) {
		return doctor.Report{}, noAnswer(all)
	}
	var answers []doctor.Answer
	for _, a := range all {
		// The silence at an address may be told as that of a node already.
		sameAddr := func(b Answer) bool { return b.Node != "" && b.via == a.via }
		switch {
		case a.Status != nil:
		case a.given && (!named || slices.ContainsFunc(all, sameAddr)):
			continue
		case !a.given && !isMissed(a.Node, all) && !(named && slices.Contains(c.Addrs, a.via)):
			continue
		}
		answers = append(answers, doctor.Answer{
			Node: a.Node, Addr: a.via, Status: a.Status, Error: a.Error, Figures: a.figures.Values,
			AheadLeast: a.figures.AheadLeast, AheadMost: a.figures.AheadMost,
		})
	}
	return doctor.Examine(answers), nil
}

// isMissed reports whether a silent node should answer. An observer that has left should
// not, nor a node that answered at another address than the one that others know.
func isMissed(id cluster.NodeID, among []Answer) bool {
	missed := false
	for _, a := range among {
		if a.Status == nil {
			continue
		}
		if a.Node == id {
			return false
		}
		m := admin.MemberIn(*a.Status, id)
		missed = missed || m.Node == id && (m.Voter || m.Gossip == "alive" || m.Link == linkUp)
	}
	return missed
}

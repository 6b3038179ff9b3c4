package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// A voter that drew this node from a leader so often, within that time, and was then silent
// over a link that stayed, is named.
const (
	manySilences = 3
	silencesIn   = 10 * time.Minute
)

// silences are what one voter's claims to lead came to.
type silences struct {
	count int
	since elector.Time // of the first
}

// judgeClaim looks at a heartbeat before the election does. It names a voter that claims to
// lead while this node's lease is valid: a quorum keeps its promises to this node until after
// that, so nobody else can have been elected. It reports whether the heartbeat draws this node
// from a leader that it has heard within half a lease. That alone proves nothing, since a
// leader may have lost its quorum since.
func (n *Node) judgeClaim(g *group, e *event) (draws bool) {
	if e.msg.Kind != elector.LeaderHeartbeat || e.from == g.follows || g.config.UnsafeNoScouting ||
		g.config.UnsafeQuorum || !slices.Contains(n.cfg.Voters, e.from) {
		return false
	}
	now := n.now()
	if lease := g.elector.Lease(); lease.Term != 0 {
		if e.msg.Term >= lease.Term && now < lease.End {
			n.diagnosis.Claimed(e.from, fmt.Sprintf("node %q claims to lead election %q in term %d, while "+
				"node %q leads it in term %d by the promises of a quorum",
				e.from, g.name, e.msg.Term, n.cfg.Node, lease.Term))
		}
		return false
	}
	s := g.elector.Status()
	return s.Leader != "" && e.msg.Term > s.Term && now.Sub(s.HeardAt) < g.config.Timing.Lease/2
}

// noteSilence counts a leader that this node was drawn to and that then was silent, and names
// it if that happens again and again.
func (n *Node) noteSilence(g *group, peer NodeID) {
	if _, linked := n.up[peer]; !linked {
		return
	}
	s, now := g.silences[peer], n.now()
	if s.count == 0 || now.Sub(s.since) > silencesIn {
		s = silences{since: now}
	}
	s.count++
	g.silences[peer] = s
	if s.count >= manySilences {
		n.diagnosis.Claimed(peer, fmt.Sprintf("node %q has claimed election %q %d times within %s from a "+
			"leader that node %q heard, and then was silent, though its link is up",
			peer, g.name, s.count, now.Sub(s.since).Round(time.Second), n.cfg.Node))
	}
}

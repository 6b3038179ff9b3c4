package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
)

// A voter is named if, manySilences times within silencesIn, it drew this node from a leader and
// was then silent although its link was up.
const (
	manySilences = 3
	silencesIn   = 10 * time.Minute
)

// silences counts the claims of one voter that were followed by silence.
type silences struct {
	count int
	since elector.Time // of the first
}

// draws looks at a heartbeat before the election does. It names a voter that claims to lead while
// this node's lease is valid: a quorum keeps its promises to this node for longer, so nobody else
// can have been elected. It reports whether the heartbeat draws this node away from a leader that
// it has heard within half a lease. That alone proves nothing, since that leader may have lost its
// quorum.
func (d *Driver) draws(g *group, e *event) bool {
	if e.msg.Kind != elector.LeaderHeartbeat || e.from == g.machine.Leader() ||
		g.Config.UnsafeNoScouting || g.Config.UnsafeQuorum ||
		!slices.Contains(g.machine.Electorate(), e.from) {
		return false
	}
	now := d.Now()
	if lease := g.machine.Lease(); lease.Term != 0 {
		if e.msg.Term >= lease.Term && now < lease.End {
			d.Claimed(findings.FalseClaim, e.from, fmt.Sprintf("node %q claims to lead election %q in term %d, while "+
				"node %q leads it in term %d by the promises of a quorum",
				e.from, g.Name, e.msg.Term, d.Node, lease.Term))
		}
		return false
	}
	s := g.machine.Status()
	return s.Leader != "" && e.msg.Term > s.Term && now.Sub(s.HeardAt) < g.Config.Timing.Lease/2
}

// noteSilence counts that a voter drew this node from a leader and was then silent. It names the
// voter if that happens again and again.
func (d *Driver) noteSilence(g *group, peer elector.NodeID) {
	if d.up[peer] == nil {
		return
	}
	s, now := g.silences[peer], d.Now()
	if s.count == 0 || now.Sub(s.since) > silencesIn {
		s = silences{since: now}
	}
	s.count++
	if g.silences == nil {
		g.own().silences = map[elector.NodeID]silences{}
	}
	g.silences[peer] = s
	if s.count >= manySilences {
		d.Claimed(findings.FalseClaim, peer, fmt.Sprintf("node %q has claimed election %q %d times within %s from a "+
			"leader that node %q heard, and then was silent, though its link is up",
			peer, g.Name, s.count, now.Sub(s.since).Round(time.Second), d.Node))
	}
}

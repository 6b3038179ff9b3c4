package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
)

const (
	lookEvery  = time.Second
	lookSoon   = 50 * time.Millisecond // after a new link: the ping of a short one is answered then
	aloneAfter = 30 * time.Second      // without any other member: then a finding says so
)

// lookout polls what no event reports, until the node ends: whether another member was found, how
// long round trips take, and whether this node wants to lead the default election. It tells the
// other members the latter.
func (n *Node) lookout() {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	met, told, soon := false, "", false
	for {
		select {
		case <-timer.C:
			soon = false
			timer.Reset(lookEvery)
			n.loop.LogSurge()
		case <-n.loop.Linked:
			if !soon { // or links that come and go would put the next look off
				soon = true
				timer.Reset(lookSoon)
			}
			continue
		case <-n.quit:
			return
		}
		if !met {
			met = n.hasMet()
			why := ""
			if !met && n.measure.Age() >= aloneAfter {
				why = n.whyAlone()
			}
			n.diagnosis.OfNode(findings.Alone, why)
		}
		n.loop.Pinged(n.mesh.Links())
		// A driver that hangs must not hold up the rest.
		ctx, cancel := context.WithTimeout(context.Background(), lookEvery)
		now, err := n.loop.Look(ctx, n.election.p)
		cancel()
		if err == nil && !now.Record.Accepted.LSN.IsZero() {
			n.lookAtVoters(&now)
		}
		why := now.NotStanding
		if err == nil && why != told && n.mesh.Tell(n.diagnosis.Facts(why)) == nil {
			told = why
		}
	}
}

// lookAtVoters finds voters that run on a data directory that the record does not name.
func (n *Node) lookAtVoters(s *loop.Snapshot) {
	found := map[NodeID]string{}
	members := n.memberStatus(s.Electorate)
	for _, id := range n.uncounted(&s.Record, members) {
		named, _ := s.Record.Accepted.Voters.Find(id)
		peer, runs := NodeID(""), n.store.Identity().String()
		for _, m := range members {
			if m.Node == id {
				if peer, runs = id, m.Identity; m.Link != "up" {
					runs = ""
				}
			}
		}
		if runs != "" && named.Identity != (elector.Identity{}) {
			found[peer] = fmt.Sprintf("voter %s counts for nothing: it runs on data directory %.8s, and "+
				"the record names %.8s", id, runs, named.Identity)
		}
	}
	n.diagnosis.OfVoters(found)
}

// hasMet reports whether any other member was ever found.
func (n *Node) hasMet() bool {
	for _, m := range n.known() {
		if m.State == gossip.StateAlive {
			return true
		}
	}
	for _, l := range n.mesh.Links() {
		if l.Up || l.Peer.Boot > 0 {
			return true
		}
	}
	return false
}

// whyAlone says why no other member was found; "" if this node is the only voter and joins nobody.
func (n *Node) whyAlone() string {
	var tries []gossip.Joined
	if n.gossip != nil {
		tries = n.gossip.Joined()
	}
	others := slices.ContainsFunc(tries, func(j gossip.Joined) bool { return !j.Self })
	if !others && slices.Equal(n.cfg.Voters, []NodeID{n.cfg.Node}) &&
		len(n.election.p.Recorded().Record.Voters.Voters()) <= 1 {
		return ""
	}
	var why []string
	for _, j := range tries {
		if j.Err != nil {
			why = append(why, fmt.Sprintf("%s: %v", j.Setting, j.Err))
		}
	}
	switch {
	case len(n.cfg.Join) == 0:
		why = []string{"it has no address to join"}
	case !others:
		why = []string{fmt.Sprintf("the addresses to join (%s) lead only to this node itself",
			strings.Join(n.cfg.Join, ", "))}
	}
	return fmt.Sprintf("node %q has found no other member: %s", n.cfg.Node, strings.Join(why, "; "))
}

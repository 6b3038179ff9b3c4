package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
	"github.com/bmqelect/bmqelect/elector"
)

const (
	lookEvery  = time.Second
	lookSoon   = 50 * time.Millisecond // after a new link: where it is short, its ping is answered
	aloneAfter = 30 * time.Second      // without any other member a node finds that it is alone
)

// lookout looks at what comes with no event, until the node ends: that no other member is
// found, how long round trips take, and that this node does not want to lead the default
// election, which the others are told.
func (n *Node) lookout() {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	met, told, soon := false, "", false
	var roundTrip time.Duration
	for {
		select {
		case <-timer.C:
			soon = false
			timer.Reset(lookEvery)
		case <-n.linked:
			if !soon { // or links that come and go would put it off
				soon = true
				timer.Reset(lookSoon)
			}
			continue
		case <-n.quit:
			return
		}
		if !met {
			met = n.hasMet()
			switch {
			case met:
				n.diagnosis.OfNode(findings.Alone, "")
			case time.Since(n.started) >= aloneAfter:
				n.diagnosis.OfNode(findings.Alone, n.whyAlone())
			}
		}
		// The elections need the order of magnitude: small changes are not worth a step.
		if now := n.roundTripNow(); (now - roundTrip).Abs() > roundTrip/4 {
			roundTrip = now
			n.post(event{do: func() { n.tellRoundTrip(now) }})
		}
		n.post(event{do: n.noteRoundTrips})
		why, _ := n.election.g.notStanding(n.now())
		if why != told && n.mesh.Tell(n.diagnosis.Facts(why)) == nil {
			told = why
		}
	}
}

// roundTripNow is what elector.Measured says by the newest pings.
func (n *Node) roundTripNow() time.Duration {
	var trips []time.Duration
	for _, l := range n.mesh.Links() {
		if l.Up && slices.Contains(n.cfg.Voters, l.Peer.Node) {
			trips = append(trips, l.RTT)
		}
	}
	return elector.TripToMajority(trips, len(n.cfg.Voters))
}

// tellRoundTrip steps the elections whose nodes stand in turn. It runs on the driver.
func (n *Node) tellRoundTrip(now time.Duration) {
	n.roundTrip = now
	for _, t := range slices.Clone(n.ticks) {
		if t.g.inTurn {
			n.step(t.g, elector.Measured{RoundTrip: now})
		}
	}
}

// hasMet reports whether any other member was ever found.
func (n *Node) hasMet() bool {
	for _, m := range n.members.all() {
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

// whyAlone says why no other member was found; "" if none is looked for, as by the only
// voter that joins nobody.
func (n *Node) whyAlone() string {
	var tries []gossip.Joined
	if n.gossip != nil {
		tries = n.gossip.Joined()
	}
	others := slices.ContainsFunc(tries, func(j gossip.Joined) bool { return !j.Self })
	if !others && slices.Equal(n.cfg.Voters, []NodeID{n.cfg.Node}) {
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

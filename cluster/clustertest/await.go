package clustertest

import (
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

// look is how often Await looks.
const look = 10 * time.Millisecond

// Await lets virtual time pass until met returns true, which is asked at once and
// then every 10 ms. It fails the test, and says what every node makes of it, if
// that takes longer than a cluster of this configuration needs for an election,
// with much to spare: about 90 s for elector.Article. what completes "waited so long for".
func (c *Cluster) Await(what string, met func() bool) {
	c.t.Helper()
	began, patience := time.Now(), c.patience()
	for {
		synctest.Wait()
		if met() {
			return
		}
		if waited := time.Since(began); waited >= patience {
			c.t.Fatalf("clustertest: waited %s of virtual time for %s, which did not come\n%s",
				waited, what, c.news())
		}
		time.Sleep(look)
	}
}

// AwaitLeader lets virtual time pass until there is a leader, and returns it: see
// Leader. It fails the test, and says what every node makes of it, if none comes.
func (c *Cluster) AwaitLeader(group ...string) (leader cluster.NodeID) {
	c.t.Helper()
	c.Await("a leader that a quorum follows", func() bool {
		leader = c.Leader(group...)
		return leader != ""
	})
	return leader
}

// Leader returns the node that leads an election now, the default one if none is named, or
// "" if none does: it runs, its lease is valid, and a quorum of voters that run and are not
// cut off from it follow it. So a leader that was just paused, isolated or crashed is none,
// although its lease may not have run out yet.
func (c *Cluster) Leader(group ...string) cluster.NodeID {
	synctest.Wait()
	name := cluster.DefaultGroup
	if len(group) > 0 {
		name = group[0]
	}
	for _, id := range c.ids {
		m := c.members[id]
		if m.state != running {
			continue
		}
		if e, err := m.node.Lookup(name); err == nil && e.IsLeader() && c.backed(m, name) {
			return id
		}
	}
	return ""
}

// backed reports whether a quorum follows a leader, and can do so for longer.
func (c *Cluster) backed(leader *member, group string) bool {
	own := election(leader.node, group)
	support := 0
	for _, id := range own.Voters {
		m := c.members[id]
		if m != nil && m.state == running && !apart(m, leader) &&
			election(m.node, group).Leader == leader.id {
			support++
		}
	}
	return support >= own.Quorum
}

// election returns what a node says of an election.
func election(n *cluster.Node, group string) (own cluster.GroupStatus) {
	for _, g := range n.Status().Groups {
		if g.Group == group {
			own = g
		}
	}
	return own
}

const (
	rounds  = 10               // more elections in a row do not fail by chance
	redials = 30 * time.Second // more than links need to be up again
)

// patience is how long to wait for what an election brings about.
func (c *Cluster) patience() (longest time.Duration) {
	for _, m := range c.members {
		t := m.config.Election.Timing
		if t == (elector.Timing{}) {
			t = elector.Article()
		}
		inactive := time.Duration(t.HeartbeatMissCount) * t.HeartbeatBroadcast
		round := t.MaxRandomWait + t.ScoutingResult + t.ElectionResult
		longest = max(longest, redials+t.InitialWait+inactive+rounds*round)
	}
	return longest
}

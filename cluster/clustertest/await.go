package clustertest

import (
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
)

// look is how often Await looks.
const look = 10 * time.Millisecond

// Await lets virtual time pass until met returns true. It calls met at once and then every
// 10 ms. After several times what an election takes in this configuration, about 90 s for
// elector.Article, Await fails the test and says how every node stands. The text what names
// the condition: the failure says "waited 90s of virtual time for" it.
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

// AwaitLeader lets virtual time pass until there is a leader (see Leader), and returns it.
// If none comes, it fails the test like Await.
func (c *Cluster) AwaitLeader(group ...string) (leader cluster.NodeID) {
	c.t.Helper()
	c.Await("a leader that a quorum follows", func() bool {
		leader = c.Leader(group...)
		return leader != ""
	})
	return leader
}

// Leader returns the node that leads an election now, or "" if none does; without a name it
// is the default election. A node leads if it runs, its lease is valid, and a quorum of
// voters follow it that run and are not cut off from it. So a leader that was just paused,
// isolated or crashed does not count, although its lease may still be valid.
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

// backed reports whether a quorum of voters that run and are not cut off follows a leader.
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

// election returns a node's status of an election.
func election(n *cluster.Node, group string) (own cluster.GroupStatus) {
	for _, g := range n.Status().Groups {
		if g.Group == group {
			own = g
		}
	}
	return own
}

const (
	rounds  = 10               // elections in a row that may fail by chance
	redials = 30 * time.Second // links are up again by then
)

// patience is how long to wait for the result of an election.
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

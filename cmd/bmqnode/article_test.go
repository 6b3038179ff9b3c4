package main_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// withoutScouting is the article's algorithm before its extension.
func withoutScouting() map[string]any {
	o := quick()
	maps.Copy(o, map[string]any{"unsafe-no-scouting": true})
	return o
}

// attempts is how long a cut lasts: time for a node without a leader to try
// several elections.
const attempts = 8 * time.Second

// hold keeps a fault for a while, in which cond must stay true.
func (s *scene) hold(cond func() bool, msg string) {
	s.t.Helper()
	require.Never(s.t, func() bool { return !cond() }, attempts, 100*time.Millisecond, msg)
}

// The non-sticky case: a follower that was cut off comes back.

func TestIsolatedNodeComesBackAndTheLeaderStays(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 5)
	lonely := s.others(first.Leader)[0]
	s.isolate(cluster.NodeID(lonely.Name))
	s.eventually("it loses its leader", func() bool { return s.lostLeader(lonely) })
	s.hold(func() bool { return len(s.transitions(lostLeadership)) == 0 },
		"the leader lost leadership while a follower was away")
	s.heal()
	s.agree(s.Nodes(), same(first))
	require.Len(t, s.transitions(becameLeader), 1)
}

func TestWithoutScoutingAnIsolatedNodeUnseatsTheLeader(t *testing.T) {
	t.Parallel()
	s := play(t, 5, withoutScouting())
	first := s.agree(s.Nodes(), nil)
	lonely := s.others(first.Leader)[0]
	s.isolate(cluster.NodeID(lonely.Name))
	s.eventually("its term runs away", func() bool {
		return len(s.transitions(func(e admin.Event) bool {
			return e.To == "CANDIDATE" &&
				e.Term > first.Term+2
		})) > 0
	})
	s.heal()
	s.eventually("the healthy leader loses leadership",
		func() bool { return len(s.transitions(lostLeadership)) > 0 })
	s.agree(s.Nodes(), above(first.Term))
}

// The ping-pong case: the link between the leader and one follower is cut.

func TestCutLinkToTheLeaderAndTheLeaderStays(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 5)
	deaf := s.cutFromLeader(first)
	s.eventually("it loses its leader", func() bool { return s.lostLeader(deaf) })
	s.hold(func() bool { return len(s.transitions(lostLeadership)) == 0 },
		"the leader lost leadership")
	s.heal()
	s.agree(s.Nodes(), same(first))
	require.Len(t, s.transitions(becameLeader), 1)
}

func TestWithoutScoutingACutLinkLetsLeadershipPingPong(t *testing.T) {
	t.Parallel()
	s := play(t, 5, withoutScouting())
	first := s.agree(s.Nodes(), nil)
	s.cutFromLeader(first)
	s.eventually("leadership moves, and moves back",
		func() bool { return len(s.transitions(becameLeader)) >= 3 })
}

// Silence in one direction only.

func TestLeaderThatNobodyHearsStepsDown(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 3)
	mute := s.node(first.Leader)
	s.fault(mute, admin.FaultRequest{CutOut: names(s.others(first.Leader))})
	second := s.agree(s.others(first.Leader), above(first.Term))
	s.eventually("the mute leader has stepped down",
		func() bool { return len(s.transitions(lostLeadership)) > 0 })
	s.heal()
	s.agree(s.Nodes(), same(second))
}

func TestFollowerThatCannotHearUnseatsNobody(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 3)
	deaf := s.others(first.Leader)[0]
	s.fault(deaf, admin.FaultRequest{CutIn: names(s.others(cluster.NodeID(deaf.Name)))})
	s.hold(func() bool { return len(s.transitions(lostLeadership)) == 0 },
		"the leader lost leadership")
	s.heal()
	s.agree(s.Nodes(), same(first))
}

// cutFromLeader cuts the link between the leader and one follower.
func (s *scene) cutFromLeader(g cluster.GroupStatus) *procs.Node {
	follower := s.others(g.Leader)[0]
	s.fault(follower, admin.FaultRequest{Cut: []cluster.NodeID{g.Leader}})
	s.fault(s.node(g.Leader), admin.FaultRequest{Cut: []cluster.NodeID{cluster.NodeID(follower.Name)}})
	return follower
}

// lostLeader reports whether n has logged that it has no leader any more.
func (s *scene) lostLeader(n *procs.Node) bool {
	return len(s.transitions(func(e admin.Event) bool {
		return string(e.Node) == n.Name && e.From == "FOLLOWER" && e.Leader == "" && e.Reason != "STARTED"
	})) > 0
}

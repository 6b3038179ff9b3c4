package compare

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// topology returns the one of a name.
func topology(t *testing.T, name string) Topology {
	for _, it := range Topologies {
		if it.Name == name {
			return it
		}
	}
	t.Fatal("there is no topology " + name)
	return Topology{}
}

// However many cores there are, and whatever else is played, rows are the same.
func TestRowsDoNotDependOnScheduling(t *testing.T) {
	cells := Cells(Topologies[:3], Networks[1:2], replay.Algorithms()[:2])
	last := 0
	many, err := Play(t.Context(), cells, 3, func(done int) { last = max(last, done) })
	require.NoError(t, err)
	require.Equal(t, len(cells), last)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, err := Play(t.Context(), cells, 3, nil)
	require.NoError(t, err)
	require.Equal(t, many, one)
	alone, err := Play(t.Context(), cells[4:5], 3, nil)
	require.NoError(t, err)
	require.Equal(t, many[4], alone[0])
}

// Every topology is played to its end by every algorithm.
func TestEveryCellIsPlayed(t *testing.T) {
	rows, err := Play(t.Context(), Cells(Topologies, Networks[:1], replay.Algorithms()), 1, nil)
	require.NoError(t, err)
	for _, r := range rows {
		require.Positive(t, r.Values["messages_per_s"].Mean, r)
		require.Greater(t, r.Values["bytes_per_s"].Mean, frameHeader*r.Values["messages_per_s"].Mean, r)
	}
}

// No two leaders, in any topology; and under these few seeds nothing deposes a leader that is
// well, which loss can do: TestOnlyLossEndsALease.
func TestOursKeepsItsPromises(t *testing.T) {
	rows, err := Play(t.Context(), Cells(Topologies, Networks, replay.Algorithms()[:1]), 5, nil)
	require.NoError(t, err)
	for _, r := range rows {
		require.Zero(t, r.Values["overlap_s"].Mean, r)
		require.Zero(t, r.Values["demotions_per_hour"].Mean, r)
		require.Less(t, r.Values["recovery_s"].Mean, 8., r)
	}
}

// The needless demotions that the page has of ours: the leader got no answers of a quorum for as
// long as a lease lasts, because heartbeats or answers were lost.
func TestOnlyLossEndsALease(t *testing.T) {
	for name, seed := range map[string]uint64{"chain-3": 164, "chain-5": 161} {
		c := Cell{Topology: topology(t, name), Network: Networks[1], Algorithm: ours.Elector}
		sc := c.scenario()
		timing, link := c.Network.Timing, c.Network.Link
		// When the newest heartbeat left that a follower answered, or later.
		answered := map[elector.NodeID]time.Duration{}
		lost, heard := 0, 0
		f, err := c.run(sc, replay.Options{Seed: seed, Observer: func(e *sim.Event) {
			switch {
			case e.Kind == sim.EventDelivered && algorithm.Name(e.Message) == "HeartbeatAck":
				answered[e.Peer] = e.At - 2*(link.Delay+link.Jitter)
			case e.Kind == sim.EventTransition && e.Transition.Reason == elector.LeaseExpired:
				lost++
				heard = 1 // itself
				for _, at := range answered {
					if at > e.At-timing.Lease {
						heard++
					}
				}
			}
		}})
		require.NoError(t, err)
		require.Equal(t, 1, f.Demotions, name)
		require.Equal(t, 1, lost, name)
		require.Less(t, heard, sc.Election.QuorumSize(), name)
	}
}

// The links that are left at the middle of a fault are those that its topology says.
func TestTopologiesLeaveTheirLinks(t *testing.T) {
	for name, want := range map[string]struct {
		links    int // that are open both ways
		oneWay   int // that are open one way
		ofLeader int // of those open both ways: links of the node that led
	}{
		"whole":           {10, 0, 4},
		"process-crash":   {10, 0, 4},
		"leader-isolated": {6, 0, 0},
		"quorum-loss":     {4, 0, 1},
		"constrained":     {3, 0, 0},
		"chain-3":         {2, 0, 1},
		"chain-5":         {4, 0, 2},
		"leader-mute":     {9, 1, 3},
		"leader-deaf":     {9, 1, 3},
		"slow-leader":     {10, 0, 4},
	} {
		c := Cell{Topology: topology(t, name), Network: Networks[0], Algorithm: ours.Elector}
		sc := c.scenario()
		cut := map[[2]elector.NodeID]bool{}
		var leader elector.NodeID
		at := c.warmUp() + c.Topology.prepares
		_, err := c.run(sc, replay.Options{Seed: 3, Observer: func(e *sim.Event) {
			switch {
			case e.At > at+10*time.Second:
			case e.Kind == sim.EventCut || e.Kind == sim.EventHealed:
				cut[[2]elector.NodeID{e.Node, e.Peer}] = e.Kind == sim.EventCut
			case e.Kind == sim.EventTransition && e.Transition.To == elector.Leader && e.At < at:
				leader = e.Node
			}
		}})
		require.NoError(t, err)
		got := want
		got.links, got.oneWay, got.ofLeader = 0, 0, 0
		for i, a := range sc.Nodes {
			for _, b := range sc.Nodes[i+1:] {
				there, back := !cut[[2]elector.NodeID{a.ID, b.ID}], !cut[[2]elector.NodeID{b.ID, a.ID}]
				switch {
				case there && back:
					got.links++
					if a.ID == leader || b.ID == leader {
						got.ofLeader++
					}
				case there || back:
					got.oneWay++
				}
			}
		}
		require.Equal(t, want, got, name)
	}
}

// The one that is to have the oldest LSN has not heard of the last election.
func TestTheConstrainedOneMissedAnElection(t *testing.T) {
	c := Cell{Topology: topology(t, "constrained"), Network: Networks[0], Algorithm: ours.Elector}
	var elected []elector.NodeID
	heard := map[elector.NodeID]bool{} // whom the second leader reached before the fault
	f, err := c.run(c.scenario(), replay.Options{Seed: 1, Observer: func(e *sim.Event) {
		switch {
		case e.Kind == sim.EventTransition && e.Transition.To == elector.Leader:
			elected = append(elected, e.Node)
		case e.Kind == sim.EventDelivered && len(elected) == 2 && e.Peer == elected[1] &&
			e.At < c.warmUp()+c.Topology.prepares:
			heard[e.Node] = true
		}
	}})
	require.NoError(t, err)
	require.Len(t, elected, 3, "at first, while it was away, and itself")
	require.Len(t, heard, 3, "all but itself")
	require.False(t, heard[elected[2]])
	require.Equal(t, 1, f.Elections)
}

// A crash of a process is known by its closed links; of a vanished host, by silence.
func TestBothKindsOfCrash(t *testing.T) {
	inactivity := Networks[0].Timing.Inactivity()
	for _, c := range []struct {
		name  string
		least time.Duration
		most  time.Duration
	}{{"process-crash", 0, inactivity / 10}, {"host-crash", inactivity / 2, 2 * inactivity}} {
		cell := Cell{Topology: topology(t, c.name), Network: Networks[0], Algorithm: ours.Elector}
		f, err := cell.run(cell.scenario(), replay.Options{Seed: 1})
		require.NoError(t, err)
		require.Greater(t, f.LastKnows, c.least)
		require.Less(t, f.LastKnows, c.most)
		require.LessOrEqual(t, f.FirstKnows, f.LastKnows)
	}
}

package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

func (h Histogram) count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// below is how many values were at most bound.
func (h Histogram) below(bound float64) (n uint64) {
	for i, b := range h.Bounds {
		if b <= bound {
			n += h.Counts[i]
		}
	}
	return n
}

func TestAnElectionIsCountedOnEverySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		st := leader.Stats()
		require.Equal(t, uint64(1), st.LeaderChanges[elector.Elected])
		require.Zero(t, st.LeaderChanges[elector.LeaderFound])
		require.GreaterOrEqual(t, st.ScoutingReceived.Yes, uint64(1))
		require.GreaterOrEqual(t, st.VotesReceived.Yes, uint64(1))
		require.Equal(t, 3, st.VotersReachable)
		require.Equal(t, 3, st.Voters)
		for _, p := range []string{"discovery", "back-off", "scouting", "proposal"} {
			require.NotZero(t, st.Phases[p].count(), p)
		}
		require.InDelta(t, 4, st.Phases["discovery"].Sum, 0.001, "the initial wait, not the back-off")
		require.NotZero(t, st.StoreWrite.count(), "its own term")
		require.Zero(t, st.Leaderless.count(), "none was lost yet")
		requireLeading(t, st.Elections[0], leader)
		for _, id := range w.others(leader) {
			st := w.nodes[id].Stats()
			require.Equal(t, uint64(1), st.LeaderChanges[elector.LeaderFound])
			require.Equal(t, uint64(1), st.Elections[0].Leaderships)
			require.Equal(t, uint64(1), st.ScoutingGiven.Yes+noes(st.ScoutingGiven))
			require.Equal(t, uint64(1), st.VotesGiven.Yes+noes(st.VotesGiven))
			require.Equal(t, leader.cfg.Node, st.Elections[0].Leader)
			require.Equal(t, elector.Follower, st.Elections[0].Role)
			require.Zero(t, st.Elections[0].LeaseLeft)
			require.Equal(t, uint64(1), st.Phases["first-heartbeat"].count())
		}
	})
}

func requireLeading(t *testing.T, e ElectionStats, leader *Node) {
	next, err := leader.NextLSN()
	require.NoError(t, err)
	require.Equal(t, DefaultGroup, e.Group)
	require.True(t, e.Leading)
	require.Equal(t, next.Term, e.Term)
	require.Equal(t, 2, e.Quorum)
	require.Equal(t, uint64(1), e.Leaderships)
	require.Positive(t, e.LeaseLeft)
	require.LessOrEqual(t, e.LeaseLeft.Duration(), elector.Article().Lease)
	require.Equal(t, next, leader.Stats().Elections[0].LSN, "as issued, whatever the followers know")
}

func noes(a Answers) (n uint64) {
	for _, c := range a.No {
		n += c
	}
	return n
}

func TestALostLeaderLeavesAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		first := w.leader()
		w.isolate(first.cfg.Node)
		time.Sleep(election)
		st := first.Stats()
		require.Equal(t, uint64(1), st.LeaderChanges[elector.LeaseExpired])
		require.Equal(t, 1, st.VotersReachable)
		require.Empty(t, st.Elections[0].Leader)
		require.False(t, st.Elections[0].Leading)
		require.Zero(t, st.Leaderless.count(), "it is not over")
		require.NotZero(t, st.Phases["scouting"].count(), "it asks, and nobody answers")
		for _, id := range w.others(first) {
			st := w.nodes[id].Stats()
			require.Equal(t, uint64(1), st.Leaderless.count())
			require.Positive(t, st.Leaderless.Sum)
			require.Less(t, st.Leaderless.Sum, election.Seconds())
			require.Equal(t, uint64(2), st.Elections[0].Leaderships)
			require.Equal(t, 2, st.VotersReachable)
		}
	})
}

func TestNoesAreCountedByCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		lonely, other := w.others(leader)[0], w.others(leader)[1]
		w.faults[leader.cfg.Node].Loss(lonely, 1) // its heartbeats are lost
		time.Sleep(election)
		require.NotZero(t, w.nodes[lonely].Stats().ScoutingReceived.No[scouting.CauseLeader])
		require.NotZero(t, w.nodes[other].Stats().ScoutingGiven.No[scouting.CauseLeader])
		require.NotZero(t, w.nodes[lonely].Stats().LeaderChanges[elector.LeaderNoHeartbeat])
	})
}

func TestWhatIsLeftOfTheLeaseShrinksWithTheLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader, before := w.leader(), w.leader().Stats().LeaseLeft
		require.NotZero(t, before.count())
		require.Equal(t, before.count()-1, before.below(.5), "half of it, twice the heartbeat's period, but for the first")
		require.Zero(t, before.below(.4))
		for _, id := range w.others(leader) {
			w.faults[id].Delay(leader.cfg.Node, 420*time.Millisecond, 0) // of 1 s
		}
		time.Sleep(election)
		require.True(t, leader.IsLeader(), "slow, but not too slow")
		require.NotZero(t, leader.Stats().LeaseLeft.below(.1))
	})
}

func TestEventsWaitWhileTheDriverIsHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(election)
		n := w.nodes["a"]
		before := n.Stats().InboxWait
		require.Equal(t, before.count(), before.below(.00001), "virtual time stands still meanwhile")
		go n.call(func() { time.Sleep(300 * time.Millisecond) })
		time.Sleep(100 * time.Millisecond)
		n.call(func() {})
		after := n.Stats().InboxWait
		require.Zero(t, after.below(.1)-before.below(.1)-2, "what held it up, and the question after it")
		require.Equal(t, uint64(1), after.below(.25)-after.below(.1))
		require.InDelta(t, .2, after.Sum-before.Sum, 1e-6)

		n.call(func() { time.Sleep(800 * time.Millisecond) }) // until 11.237 s; a tick was due at 10.5 s
		synctest.Wait()
		last := n.Stats().InboxWait
		require.Equal(t, uint64(1), last.below(1)-last.below(.5), "as a tick does")
	})
}

func TestAWriteIsTimedWhileItRunsAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(election)
		n := w.nodes["a"]
		before := n.Stats().StoreWrite
		write := n.timed(func(map[string]lsn.Term) error { time.Sleep(time.Minute); return nil })
		go func() { _ = write(nil) }()
		time.Sleep(40 * time.Second)
		require.InDelta(t, 40, float64(n.Stats().StoreWriting), 1e-6)
		require.Equal(t, before, n.Stats().StoreWrite)
		time.Sleep(40 * time.Second)
		require.Zero(t, n.Stats().StoreWriting)
		require.Equal(t, uint64(1), n.Stats().StoreWrite.count()-before.count())
		require.InDelta(t, 60, n.Stats().StoreWrite.Sum-before.Sum, 1e-6)
	})
}

func TestOnlyEventsThatSomebodyWantedAreMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(election)
		n := w.nodes["a"]
		newest, all := n.Subscribe(1), n.Subscribe(2)
		for range 5 {
			n.hub.publish(Event{})
		}
		st := n.Stats()
		require.Equal(t, uint64(3), st.MissedEvents)
		require.Equal(t, 2, st.Subscriptions)
		newest.Close()
		all.Close()
		require.Zero(t, n.Stats().Subscriptions)
	})
}

func TestOverdueWorkShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		work, err := leader.Default().Campaign(t.Context())
		require.NoError(t, err)
		require.False(t, leader.Stats().Elections[0].WorkOverdue)
		w.isolate(leader.cfg.Node)
		<-work.Done()
		synctest.Wait()
		require.True(t, leader.Stats().Elections[0].WorkOverdue)
		work.Release()
		require.False(t, leader.Stats().Elections[0].WorkOverdue)
	})
}

func TestStatsOfAClosedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(election)
		n := w.nodes["a"]
		w.close("a")
		st := n.Stats()
		require.Equal(t, elector.Dormant, st.Elections[0].Role)
		require.Equal(t, uint64(1), st.LeaderChanges[elector.Stopped])
	})
}

// A process that was paused finds a tick due and events to handle; the clock says
// how late both are, whichever comes first.
func TestAPauseShowsWhateverComesFirstAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(election)
		n := w.nodes["a"]
		before := n.Stats().InboxWait
		now := n.age()
		n.call(func() { n.taken(&event{posted: now}, now-2*time.Second) })
		after := n.Stats().InboxWait
		require.Equal(t, uint64(1), after.count()-after.below(1)-before.count()+before.below(1))
		require.InDelta(t, 2, after.Sum-before.Sum, 1e-6)
	})
}

// What is counted by an array must have room for all that there is.
func TestEveryReasonAndAnswerHasItsCounter(t *testing.T) {
	require.Contains(t, (lastReason + 1).String(), "REASON(", "no reason after it")
	require.False(t, (lastAnswer + 1).Valid())
}

// fed is a node that follows b, which is not there, and the heartbeat that it
// gets from it.
func fed(tb testing.TB) (*Node, event) {
	n, err := Start(tb.Context(), Config{
		Node: "a", Voters: []NodeID{"a", "b"}, DataDir: tb.TempDir(), GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
	})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, n.Close(context.Background())) })
	e := event{from: "b", group: DefaultGroup, msg: elector.Message{Kind: elector.LeaderHeartbeat, Term: 7, Sequence: 1, SentAt: 1}}
	n.post(e)
	require.Eventually(tb, func() bool { return n.Stats().Elections[0].Leader == "b" }, time.Minute, time.Millisecond)
	return n, e
}

func TestAHeartbeatTakesNoMemory(t *testing.T) {
	n, e := fed(t)
	e.posted = 1
	allocated := 1.0
	n.call(func() {
		allocated = testing.AllocsPerRun(1000, func() {
			n.taken(&e, 1)
			n.handle(&e)
		})
	})
	require.Zero(t, allocated)
}

// BenchmarkHeartbeat is what a heartbeat takes from the link's reader to the
// driver, and there.
func BenchmarkHeartbeat(b *testing.B) {
	n, e := fed(b)
	b.ReportAllocs()
	for b.Loop() {
		n.post(e)
	}
	n.call(func() {})
}

// BenchmarkHandle is the driver's part of that.
func BenchmarkHandle(b *testing.B) {
	n, e := fed(b)
	e.posted = 1
	b.ReportAllocs()
	n.call(func() {
		for b.Loop() {
			n.taken(&e, time.Hour)
			n.handle(&e)
		}
	})
}

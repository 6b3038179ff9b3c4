package cluster

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/cluster/internal/testprocess"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/memnet"
)

// leadsAlone is a node that has led for a while, as the only voter, in virtual time.
func leadsAlone(t *testing.T) *Node {
	process := testprocess.New(memnet.New(), "a")
	hooks := testhook.Hooks{Peers: map[NodeID]string{"a": "a:7401"}}
	n, err := Start(process.Context(hooks), Config{
		Node: "a", Voters: []NodeID{"a"}, DataDir: t.TempDir(), MeshAddr: "a:7401", Insecure: true,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close(context.Background())) })
	time.Sleep(10*time.Second + 40*time.Millisecond) // not when the lookout looks
	require.True(t, n.IsLeader())
	return n
}

func TestEventsWaitWhileTheDriverIsHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		before := n.Stats().InboxWait
		require.Equal(t, before.Count(), before.Below(.00001), "virtual time stands still meanwhile")
		go n.call(func() { time.Sleep(300 * time.Millisecond) })
		time.Sleep(100 * time.Millisecond)
		n.call(func() {})
		after := n.Stats().InboxWait
		require.Zero(t, after.Below(.1)-before.Below(.1)-2, "what held it up, and the question after it")
		require.Equal(t, uint64(1), after.Below(.25)-after.Below(.1))
		require.InDelta(t, .2, after.Sum-before.Sum, 1e-6)

		n.call(func() { time.Sleep(800 * time.Millisecond) }) // a tick was due at 10.5 s
		synctest.Wait()
		last := n.Stats().InboxWait
		require.Equal(t, uint64(1), last.Below(1)-last.Below(.5), "as a tick does")
	})
}

func TestAWriteIsTimedWhileItRunsAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		before := n.Stats().StoreWrite
		go func() { _ = n.timed(func() error { time.Sleep(time.Minute); return nil }) }()
		time.Sleep(40 * time.Second)
		require.InDelta(t, 40, float64(n.Stats().StoreWriting), 1e-6)
		require.Equal(t, before, n.Stats().StoreWrite)
		time.Sleep(40 * time.Second)
		require.Zero(t, n.Stats().StoreWriting)
		require.Equal(t, uint64(1), n.Stats().StoreWrite.Count()-before.Count())
		require.InDelta(t, 60, n.Stats().StoreWrite.Sum-before.Sum, 1e-6)
	})
}

func TestOnlyEventsThatSomebodyWantedAreMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
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

// A process that was paused finds a tick due and events to handle; the clock says
// how late both are, whichever comes first.
func TestAPauseShowsWhateverComesFirstAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		before := n.Stats().InboxWait
		now := n.age()
		n.call(func() { n.taken(&event{posted: now}, now-2*time.Second) })
		after := n.Stats().InboxWait
		require.Equal(t, uint64(1), after.Count()-after.Below(1)-before.Count()+before.Below(1))
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
		Node: "a", Voters: []NodeID{"a", "b"}, DataDir: tb.TempDir(), GossipAddr: "127.0.0.1:0",
		MeshAddr: "127.0.0.1:0",
	})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, n.Close(context.Background())) })
	e := event{from: "b", group: DefaultGroup, msg: elector.Message{Kind: elector.LeaderHeartbeat,
		Term: 7, Sequence: 1, SentAt: 1}}
	n.post(e)
	require.Eventually(tb, func() bool { return n.Stats().Elections[0].Leader == "b" }, time.Minute,
		time.Millisecond)
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

// TestWhatIsAskedOfAStuckDriverIsBounded, and the newest of each counts when it goes on.
func TestWhatIsAskedOfAStuckDriverIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		e, release := n.Default(), make(chan struct{})
		goOn := sync.OnceFunc(func() { close(release) })
		defer goOn()
		n.post(event{do: func() { <-release }})
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		const calls = 100_000
		for i := range calls {
			require.NoError(t, e.SetPriority(i))
			require.NoError(t, e.SetFit(os.ErrClosed))
			require.NoError(t, e.SetCandidate(i%2 == 1))
			require.NoError(t, e.SetFit(nil))
			require.Less(t, len(e.g.requests)+len(n.waiting.groups), 8, "after %d calls", i)
			if i%100 == 0 {
				_, err := e.Campaign(gone)
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		goOn()
		synctest.Wait()
		n.call(func() {})
		require.Empty(t, e.g.requests)
		status := n.Status().Groups[0]
		require.Equal(t, calls-1, status.Priority)
		require.Empty(t, status.Unfit)
	})
}

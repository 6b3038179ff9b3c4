package cluster

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/cluster/internal/testprocess"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
)

// leadsAlone is a node that has led for a while, as the only voter, in virtual time. It looks in
// each heartbeat period whether somebody else should lead.
func leadsAlone(t *testing.T) *Node {
	process := testprocess.New(memnet.New(), "a")
	hooks := testhook.Hooks{Peers: map[NodeID]string{"a": "a:7401"}}
	n, err := Start(process.Context(hooks), Config{
		Node: "a", Voters: []NodeID{"a"}, DataDir: t.TempDir(), MeshAddr: "a:7401", Insecure: true,
		Election: ElectionConfig{Takeover: time.Hour},
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
		go n.Do(func() { time.Sleep(300 * time.Millisecond) })
		time.Sleep(100 * time.Millisecond)
		n.Do(func() {})
		after := n.Stats().InboxWait
		require.Zero(t, after.Below(.1)-before.Below(.1)-5, "what held it up, and the visits of Stats")
		require.Equal(t, uint64(1), after.Below(.25)-after.Below(.1))
		require.InDelta(t, .2, after.Sum-before.Sum, 1e-6)

		n.Do(func() { time.Sleep(800 * time.Millisecond) }) // a tick was due at 10.5 s
		synctest.Wait()
		last := n.Stats().InboxWait
		require.Equal(t, uint64(1), last.Below(1)-last.Below(.5), "as a tick does")
	})
}

func TestOnlyEventsThatSomebodyWantedAreMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		newest, all := n.Subscribe(1), n.Subscribe(2)
		for range 5 {
			n.hub.say(1)
		}
		st := n.Stats()
		require.Equal(t, uint64(3), st.MissedEvents)
		require.Equal(t, 2, st.Subscriptions)
		newest.Close()
		all.Close()
		require.Zero(t, n.Stats().Subscriptions)
	})
}

func TestAnObserverSeesNoLeadershipTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		var seen []Leader
		go func() {
			for l := range n.Default().Observe(t.Context()) {
				seen = append(seen, l)
			}
		}()
		for _, term := range []lsn.Term{1, 1, 2, 2} {
			synctest.Wait()
			n.hub.publish(DefaultGroup, elector.Transition{Leader: "a", Term: term}, time.Now(), "")
		}
		synctest.Wait()
		require.Equal(t, []Leader{{Node: "a", Term: 1}, {Node: "a", Term: 2}}, seen)
	})
}

// The requests to a driver that hangs are bounded, and the newest counts when it goes on.
func TestCampaignsBesideAStuckDriverLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := leadsAlone(t)
		e, release := n.Default(), make(chan struct{})
		goOn := sync.OnceFunc(func() { close(release) })
		defer goOn()
		go n.Do(func() { <-release })
		synctest.Wait()
		const calls = 1000
		for i := range calls {
			require.NoError(t, e.SetPriority(i))
			require.NoError(t, e.SetFit(os.ErrClosed))
			require.NoError(t, e.SetCandidate(i%2 == 1))
			require.NoError(t, e.SetFit(nil))
			ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
			_, err := e.Campaign(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		var asked []elector.Input
		for in, ok := e.p.NextRequest(); ok; in, ok = e.p.NextRequest() {
			asked = append(asked, in)
		}
		require.Less(t, len(asked), 8)
		goOn()
		n.drive(func(d *loop.Driver) {
			for _, in := range asked {
				d.Step(e.p, in)
			}
		})
		status := n.Status().Groups[0]
		require.Equal(t, calls-1, status.Priority)
		require.Empty(t, status.Unfit)
	})
}

package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// A follower that was stopped for longer than the inactivity interval reads the heartbeats
// that waited for it before it judges: it neither gives its leader up nor scouts. Its links
// stay, too: how long they were silent is not judged before they are read.
func TestAStoppedFollowerListensBeforeItJudges(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		follower := c.Node(c.others(leader)[0])
		events := follower.Subscribe(10)
		before := follower.Stats()
		require.Zero(t, before.Stalls)
		for _, pause := range []time.Duration{1800 * time.Millisecond, 2 * time.Second, 2900 * time.Millisecond} {
			c.Pause(follower.ID())
			time.Sleep(pause)
			c.Resume(follower.ID())
			time.Sleep(election)
		}
		events.Close()
		for e := range events.Events() {
			require.Fail(t, "a transition", "%+v", e.Transition)
		}
		after := follower.Stats()
		require.Equal(t, before.ScoutingReceived, after.ScoutingReceived)
		require.Equal(t, uint64(3), after.Stalls)
		require.Equal(t, uint64(3), follower.Status().Stalls)
	})
}

// A leader that died while the follower was stopped is given up nonetheless, a heartbeat
// period after the follower has woken at the latest, also if its inbox is never empty.
func TestAFloodPutsNoJudgementOff(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		follower := c.Node(c.others(leader)[0])
		c.Pause(follower.ID())
		c.Pause(leader.ID())
		time.Sleep(2 * time.Second)
		c.Resume(follower.ID())
		woke := time.Now()
		var flood func()
		flood = func() {
			if time.Since(woke) < time.Second {
				time.Sleep(10 * time.Millisecond) // each event holds the driver up
				go follower.Do(flood)
			}
		}
		go follower.Do(flood)
		require.Eventually(t, func() bool {
			return follower.Stats().LeaderChanges[elector.LeaderNoHeartbeat] > 0
		}, article.HeartbeatBroadcast+50*time.Millisecond, 10*time.Millisecond)
		time.Sleep(time.Second)
		synctest.Wait()
		c.Resume(leader.ID())
	})
}

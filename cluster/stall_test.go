package cluster_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// A follower that was stopped for longer than the inactivity interval reads the heartbeats
// that waited for it before it judges: it neither gives its leader up nor scouts. Its links
// stay, too: their silence is not judged before they are read.
func TestAStoppedFollowerListensBeforeItJudges(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		follower := c.Node(c.others(leader)[0])
		events := follower.Subscribe(10)
		before := follower.Stats()
		require.Zero(t, before.Stalls)
		// The idle time-out is 3 s. It is over for the ack that the follower sent at 10 s, and
		// not for what the leader sent after 10.1 s.
		time.Sleep(100 * time.Millisecond)
		for _, pause := range []time.Duration{2950 * time.Millisecond, 1800 * time.Millisecond} {
			c.Pause(follower.ID())
			time.Sleep(pause)
			c.Resume(follower.ID())
			time.Sleep(election)
		}
		requireNone(t, events)
		after := follower.Stats()
		require.Equal(t, before.ScoutingReceived, after.ScoutingReceived)
		require.Equal(t, uint64(2), after.Stalls)
		require.Equal(t, uint64(2), follower.Status().Stalls)
	})
}

// That a follower was stopped changes neither what it measures of its leader's link nor how soon it
// detects the leader's death.
func TestAStallOfItsOwnTeachesAFollowerNothing(t *testing.T) {
	ask := detector.QoS{Detect: time.Second, Accuracy: 0.99999,
		Mistakes: detector.Recurrence(24 * time.Hour)}
	demanding := clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Election.QoS = ask
		cfg.Election.Timing = elector.ForQoS(ask)
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(5 * time.Minute)
		leader := c.leader()
		follower := c.Node(c.others(leader)[0])
		before := follower.Status().Groups[0].QoS
		require.True(t, before.Met, before.Unmet)

		c.Pause(follower.ID())
		time.Sleep(5 * time.Second)
		c.Resume(follower.ID())
		time.Sleep(3 * time.Second)
		after := follower.Status().Groups[0].QoS
		require.True(t, after.Met, after.Unmet)
		require.Equal(t, before.Deviation, after.Deviation)
		require.Equal(t, before.Detect, after.Detect)
		require.NotZero(t, follower.Stats().Stalls)

		c.Pause(leader.ID())
		stopped := time.Now()
		c.Await("the leader is given up", func() bool {
			return follower.Stats().LeaderChanges[elector.LeaderNoHeartbeat] > 0
		})
		require.LessOrEqual(t, time.Since(stopped), ask.Detect+20*time.Millisecond)
		c.Resume(leader.ID())
	}, demanding)
}

// A follower that was stopped gives up a leader that hangs, even if a flood of events makes the
// follower late again and again.
func TestAFloodPutsNoJudgementOff(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		follower := c.Node(c.others(leader)[0])
		c.Pause(follower.ID())
		c.Pause(leader.ID())
		time.Sleep(1600 * time.Millisecond) // the link ends after 3 s of silence, and is not to be first
		c.Resume(follower.ID())
		woke := time.Now()
		var flood func()
		flood = func() {
			if time.Since(woke) < 5*time.Second {
				time.Sleep(400 * time.Millisecond) // each event holds the driver up
				go follower.Do(flood)
			}
		}
		go follower.Do(flood)
		time.Sleep(2 * time.Second)
		require.NotZero(t, follower.Stats().LeaderChanges[elector.LeaderNoHeartbeat])
		time.Sleep(5 * time.Second)
		c.Resume(leader.ID())
	})
}

// Whatever wakes a driver that was held up, its elections that follow read the messages that wait
// before they judge their leader.
func TestALateDriverListensFirstWhateverItWasWokenBy(t *testing.T) {
	const late = 1800 * time.Millisecond // longer than the inactivity interval
	var held atomic.Pointer[cluster.NodeID]
	gate := clustertest.Hooks(func(id cluster.NodeID, h *testhook.Hooks) {
		h.Gate = func() {
			if next := held.Load(); next != nil && *next == id {
				held.Store(nil)
				time.Sleep(late)
			}
		}
	})
	for name, wake := range map[string]func(follower *cluster.Node, other cluster.NodeID){
		"tick": func(follower *cluster.Node, _ cluster.NodeID) {
			follower.Do(func() { time.Sleep(late) })
		},
		"message": func(follower *cluster.Node, other cluster.NodeID) {
			id := follower.ID()
			held.Store(&id)
			follower.Default().Hear(other, elector.Message{Kind: elector.HeartbeatAck, Term: 1}, nil)
		},
		"request": func(follower *cluster.Node, _ cluster.NodeID) {
			id := follower.ID()
			held.Store(&id)
			_ = follower.Default().SetFit(errors.New("not now"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, three, func(t *testing.T, c *testCluster) {
				leader := c.elect()
				ids := c.others(leader)
				events := c.Node(ids[0]).Subscribe(10)
				synctest.Wait()
				wake(c.Node(ids[0]), ids[1])
				time.Sleep(election)
				require.Nil(t, held.Load(), "the driver was held up")
				requireNone(t, events)
			}, gate)
		})
	}
}

// A tick that is late by less than a millisecond is handled at once, because timers are usually
// that late. After a later tick the election waits as long again.
func TestTimersAreALittleLate(t *testing.T) {
	for late, judged := range map[time.Duration]time.Duration{
		999 * time.Microsecond: 999 * time.Microsecond,
		time.Millisecond:       2 * time.Millisecond,
	} {
		withCluster(t, three, func(t *testing.T, c *testCluster) {
			leader := c.elect()
			follower := c.Node(c.others(leader)[0])
			c.Pause(leader.ID())
			events := follower.Subscribe(10)
			var due time.Time
			follower.HoldUp(func(wait time.Duration) {
				due = time.Now().Add(wait)
				time.Sleep(time.Until(due) + late)
			})
			e := <-events.Events()
			require.Equal(t, elector.LeaderNoHeartbeat, e.Reason)
			require.Equal(t, judged, time.Since(due))
			c.Resume(leader.ID())
		})
	}
}

// A leader whose driver was held up says what its application has issued meanwhile, within a
// period.
func TestALateHeartbeatHasTheNewestLSN(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		var sent []lsn.LSN
		l.Node().OnSend(func(m elector.Message) {
			if m.Kind == elector.LeaderHeartbeat {
				sent = append(sent, m.LSN)
			}
		})
		var newest lsn.LSN
		l.Node().Do(func() {
			sent = nil
			time.Sleep(article.HeartbeatBroadcast + 10*time.Millisecond)
			newest, _ = l.NextLSN()
		})
		time.Sleep(article.HeartbeatBroadcast)
		var first lsn.LSN
		l.Node().Do(func() { first = sent[0] })
		require.NotZero(t, newest)
		require.Equal(t, newest, first)
		l.Release()
	})
}

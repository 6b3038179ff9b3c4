package cluster_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// kept is how many steps a test makes of those that KEPT_LIVES says, and its source of chance, of
// which it prints the seed.
func kept(t *testing.T, few int) (steps int, random *rand.Rand) {
	if given, err := strconv.Atoi(os.Getenv("KEPT_LIVES")); err == nil {
		few = given
	}
	seed, err := strconv.ParseUint(os.Getenv("BMQELECT_SEED"), 10, 64)
	seed = cmp.Or(seed, rand.Uint64())
	if err != nil {
		t.Logf("BMQELECT_SEED=%d", seed)
	}
	return few, rand.New(rand.NewPCG(seed, 0))
}

// chance is a random source for many goroutines.
type chance struct {
	*rand.Rand

	mu sync.Mutex
}

func (c *chance) exponential(mean time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.ExpFloat64() * float64(mean))
}

func (c *chance) once(in int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.IntN(in) == 0
}

// unseated notes when nodes suspect their leader, and when one leads.
type unseated struct {
	mu        sync.Mutex
	suspected []time.Time
	elected   int
}

func (u *unseated) follow(events *cluster.Subscription) {
	for e := range events.Events() {
		u.mu.Lock()
		if e.Reason == elector.LeaderNoHeartbeat {
			u.suspected = append(u.suspected, e.Time)
		}
		if e.To == elector.Leader {
			u.elected++
		}
		u.mu.Unlock()
	}
}

func (u *unseated) take() (suspected []time.Time, elected int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	suspected, elected = u.suspected, u.elected
	u.suspected, u.elected = nil, 0
	return suspected, elected
}

func (c *testCluster) watch() *unseated {
	u := &unseated{}
	for _, n := range c.nodes() {
		go u.follow(n.Subscribe(100))
	}
	return u
}

// Whole nodes promise and keep, by beats as datagrams, that a leader which hangs is suspected
// within 200 ms, with a mistake a month, on links of 1 ms: the delays are exponential. A life is
// one of 10 to 20 s; KEPT_LIVES=1000 plays more than a few.
func TestBeatsKeepAMistakeAMonth(t *testing.T) {
	lives, random := kept(t, 10)
	delays := &chance{Rand: random}
	ask := detector.QoS{
		Detect: 200 * time.Millisecond, Mistakes: detector.Recurrence(30 * 24 * time.Hour),
		Accuracy: 0.99999,
	}
	var after []time.Duration
	var up time.Duration
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.elect()
		watch := c.watch()
		for range lives {
			began := time.Now()
			time.Sleep(10*time.Second + delays.exponential(5*time.Second))
			led := c.leader()
			for _, id := range c.others(led) {
				q := c.Node(id).Status().Groups[0].QoS
				require.True(t, q.Met && q.Independent, "%+v", *q)
			}
			mistakes, _ := watch.take()
			require.Empty(t, mistakes)
			c.Pause(led.ID())
			paused := time.Now()
			up += paused.Sub(began)
			time.Sleep(time.Second)
			suspected, _ := watch.take()
			for _, at := range suspected {
				after = append(after, at.Sub(paused))
			}
			c.Resume(led.ID())
			time.Sleep(5 * time.Second)
			watch.take()
		}
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.QoS = ask }),
		clustertest.Network(func(net *memnet.Network) {
			net.Delay(func(string, string) time.Duration { return delays.exponential(time.Millisecond) },
				func() time.Duration { return 0 })
		}))
	slices.Sort(after)
	t.Logf("%d lives, %s: %d suspicions after %s-%s, the median %s; no mistake",
		lives, up.Round(time.Second), len(after), after[0], after[len(after)-1], after[len(after)/2])
	require.GreaterOrEqual(t, len(after), lives)
	require.LessOrEqual(t, after[len(after)-1], ask.Detect+time.Millisecond)
}

// With the timers of a local network and five voters, a leader leads on while one packet in a
// hundred is lost: a datagram is gone, one of a connection comes 200 ms later, and with it all
// those behind it. A step is six seconds.
func TestLossMovesNoLeader(t *testing.T) {
	steps, random := kept(t, 5)
	lots := &chance{Rand: random}
	withCluster(t, []cluster.NodeID{"a", "b", "c", "d", "e"}, func(t *testing.T, c *testCluster) {
		c.elect()
		led, watch := c.leader(), c.watch()
		time.Sleep(time.Duration(steps) * 6 * time.Second)
		suspected, elected := watch.take()
		t.Logf("%d steps: %d suspicions", steps, len(suspected))
		require.Zero(t, elected)
		require.Equal(t, led, c.leader())
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.Timing = elector.LAN() }),
		clustertest.Network(func(net *memnet.Network) {
			net.Delay(func(string, string) time.Duration {
				if lots.once(100) {
					return 200 * time.Millisecond
				}
				return 200 * time.Microsecond
			}, func() time.Duration { return 0 })
			net.Lose(func(string, string) bool { return lots.once(100) })
		}))
}

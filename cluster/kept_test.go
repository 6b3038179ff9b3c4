package cluster_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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

// seen are the transitions of all nodes since the last look.
type seen struct {
	mu  sync.Mutex
	all []sight
}

type sight struct {
	cluster.Event

	node cluster.NodeID
}

func (c *testCluster) watch() *seen {
	s := &seen{}
	for id, n := range c.nodes() {
		events := n.Subscribe(100)
		go func() {
			for e := range events.Events() {
				s.mu.Lock()
				s.all = append(s.all, sight{e, id})
				s.mu.Unlock()
			}
		}()
	}
	return s
}

func (s *seen) take() (all []sight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.all = s.all, nil
	return all
}

// Whole nodes promise and keep, by beats as datagrams, that a leader which hangs is given up within
// 200 ms, with a mistake a month, on links of 1 ms: the delays are exponential. A life is one of 10
// to 20 s; KEPT_LIVES=1000 plays more than a few.
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
			require.Empty(t, watch.take(), "no mistake")
			c.Pause(led.ID())
			paused := time.Now()
			up += paused.Sub(began)
			time.Sleep(ask.Detect + time.Millisecond)
			gone := map[cluster.NodeID]bool{}
			for _, e := range watch.take() {
				if !gone[e.node] {
					gone[e.node] = true
					after = append(after, e.Time.Sub(paused))
				}
			}
			require.Len(t, gone, 2, "both followers give it up")
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
	t.Logf("%d lives, %s: given up by %d followers after %s-%s, the median %s; no mistake",
		lives, up.Round(time.Second), len(after), after[0], after[len(after)-1], after[len(after)/2])
}

// With the timers of a local network and five voters, a leader leads on while one packet in a
// hundred is lost: a datagram is gone, one of a connection comes 200 ms later, and with it all
// behind it. A step is six seconds.
func TestLossMovesNoLeader(t *testing.T) {
	steps, random := kept(t, 5)
	lots := &chance{Rand: random}
	withCluster(t, []cluster.NodeID{"a", "b", "c", "d", "e"}, func(t *testing.T, c *testCluster) {
		c.elect()
		led, watch := c.leader(), c.watch()
		time.Sleep(time.Duration(steps) * 6 * time.Second)
		lost := 0
		for _, e := range watch.take() {
			require.NotEqual(t, elector.Leader, e.To, "%s in %s", e.node, e.Transition)
			if e.Leader == "" {
				lost++
			}
		}
		t.Logf("%d steps: a follower lost its leader %d times", steps, lost)
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

// §16.6: while TCP works, datagrams that are late or lost, in one direction or both, move no
// leader, and no follower misses its own: what is not answered goes on the stream before a lease
// ends. Each node leads some elections, so the loss of a beat is not the loss of all that goes its
// way. A step is six seconds.
func TestFailingDatagramsMoveNoLeader(t *testing.T) {
	steps, random := kept(t, 2)
	lots, far := &chance{Rand: random}, atomic.Int64{}
	lost := func(lost func(from, to string) bool) func(*memnet.Network, time.Duration) {
		return func(net *memnet.Network, _ time.Duration) { net.Lose(lost) }
	}
	late := func(tenths time.Duration) func(*memnet.Network, time.Duration) {
		return func(net *memnet.Network, period time.Duration) { net.Late(tenths * period / 10) }
	}
	for _, timing := range []elector.Timing{elector.Article(), elector.LAN()} {
		for name, fail := range map[string]func(net *memnet.Network, period time.Duration){
			"all lost":           lost(func(string, string) bool { return true }),
			"lost from one node": lost(func(from, _ string) bool { return from == "b" }),
			"lost to one node":   lost(func(_, to string) bool { return to == "b" }),
			"half lost":          lost(func(string, string) bool { return lots.once(2) }),
			"nine in ten lost":   lost(func(string, string) bool { return !lots.once(10) }),
			"all lost on long links": func(net *memnet.Network, period time.Duration) {
				far.Store(int64(period * 7 / 40))
				time.Sleep(20 * time.Second)
				net.Lose(func(string, string) bool { return true })
			},
			"late by 0.3 periods":  late(3),
			"late by 0.6 periods":  late(6),
			"late by 1.1 periods":  late(11),
			"late by 1.6 periods":  late(16),
			"late by five periods": late(50),
		} {
			t.Run(timing.HeartbeatBroadcast.String()+"/"+name, func(t *testing.T) {
				far.Store(0)
				withCluster(t, three, func(t *testing.T, c *testCluster) {
					for _, name := range []string{"e", "f", "g", "h", "i"} {
						for _, n := range c.nodes() {
							_, err := n.Election(name, cluster.ElectionConfig{
								Timing: timing, Priority: cluster.Rendezvous(name, n.ID()),
							})
							require.NoError(t, err)
						}
					}
					work := c.campaign(three...).next()
					time.Sleep(2 * election)
					watch := c.watch()
					fail(c.net, timing.HeartbeatBroadcast)
					time.Sleep(time.Duration(steps) * 6 * time.Second)
					c.net.Lose(nil)
					c.net.Late(0)
					time.Sleep(10 * time.Second)
					for _, e := range watch.take() {
						require.NotEqual(t, elector.Leader, e.To, "%s in %s", e.node, e.Transition)
						require.NotEmpty(t, e.Leader, "%s in %s", e.node, e.Transition)
					}
					require.NoError(t, work.Context().Err(), "guarded work goes on")
					work.Release()
				}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.Timing = timing }),
					clustertest.Network(func(net *memnet.Network) {
						net.Delay(func(string, string) time.Duration { return time.Duration(far.Load()) },
							func() time.Duration { return 0 })
					}))
			})
		}
	}
}

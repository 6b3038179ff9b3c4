package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
)

func start(b *testing.B, id NodeID, voters []NodeID, join ...string) *Node {
	return startWith(b, id, voters, elector.Article(), join...)
}

func startWith(
	b *testing.B, id NodeID, voters []NodeID, timing elector.Timing, join ...string,
) *Node {
	n, err := Start(b.Context(), Config{
		Node: id, Voters: voters, DataDir: b.TempDir(), GossipAddr: "127.0.0.1:0",
		MeshAddr: "127.0.0.1:0", Join: join, Election: ElectionConfig{Timing: timing},
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, n.Close(context.Background())) })
	return n
}

func leadingAlone(b *testing.B) *Node {
	n := start(b, "a", []NodeID{"a"})
	require.Eventually(b, n.IsLeader, 10*time.Second, time.Millisecond)
	return n
}

// BenchmarkIsLeader is what every guarded action of an application pays.
func BenchmarkIsLeader(b *testing.B) {
	n := leadingAlone(b)
	b.ReportAllocs()
	for b.Loop() {
		if !n.IsLeader() {
			b.Fatal("not leading")
		}
	}
}

// BenchmarkNextLSN is the price of a fencing token.
func BenchmarkNextLSN(b *testing.B) {
	n := leadingAlone(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.NextLSN(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHeartbeatPath is the whole path of a heartbeat between two nodes on loopback, and of
// its ack: machine, driver and mesh of both, without gossip. The times are those of the period;
// what counts is what is allocated, pings of the same time included: less than one a heartbeat.
func BenchmarkHeartbeatPath(b *testing.B) {
	timing := elector.LAN()
	voters := []NodeID{"a", "b"}
	var nodes []*Node
	for _, id := range voters {
		cfg := Config{
			Node: id, Voters: voters, DataDir: b.TempDir(),
			MeshAddr: "127.0.0.1:0", Election: ElectionConfig{Timing: timing},
		}
		peers := map[NodeID]string{}
		if len(nodes) > 0 {
			peers["a"] = nodes[0].Status().MeshAddr
		}
		n, err := Start(testhook.With(b.Context(), testhook.Hooks{Peers: peers}), cfg)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, n.Close(context.Background())) })
		nodes = append(nodes, n)
	}
	leads := func() bool { return nodes[0].IsLeader() || nodes[1].IsLeader() }
	require.Eventually(b, leads, 20*time.Second, time.Millisecond)
	time.Sleep(time.Second) // the first pings
	b.ReportAllocs()
	b.ResetTimer()
	time.Sleep(time.Duration(b.N) * timing.HeartbeatBroadcast)
}

// BenchmarkConfirm is a proof of leadership among three nodes on loopback: a round trip to a
// follower and back, which calls at the same time share.
func BenchmarkConfirm(b *testing.B) {
	voters := []NodeID{"a", "b", "c"}
	a := start(b, "a", voters)
	join := a.Status().GossipAddr
	nodes := []*Node{a, start(b, "b", voters, join), start(b, "c", voters, join)}
	var leader *Election
	require.Eventually(b, func() bool {
		for _, n := range nodes {
			if n.Default().Confirm(b.Context()) == nil {
				leader = n.Default()
			}
		}
		return leader != nil
	}, 20*time.Second, 10*time.Millisecond)
	for name, atATime := range map[string]int{"alone": 0, "100 at a time": 50} {
		b.Run(name, func(b *testing.B) {
			if atATime == 0 {
				for b.Loop() {
					require.NoError(b, leader.Confirm(b.Context()))
				}
				return
			}
			b.SetParallelism(atATime) // for each of two processors
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := leader.Confirm(b.Context()); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkPreparedHandover is a planned handover among three nodes on loopback whose application
// needs 100 ms to prepare itself: how long nobody works, in the median and at worst.
func BenchmarkPreparedHandover(b *testing.B) {
	voters := []NodeID{"a", "b", "c"}
	a := startWith(b, "a", voters, elector.LAN())
	join := a.Status().GossipAddr
	nodes := []*Node{a, startWith(b, "b", voters, elector.LAN(), join),
		startWith(b, "c", voters, elector.LAN(), join)}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	began, stopped := make(chan time.Time, 1), make(chan time.Time, 1)
	for _, n := range nodes {
		var warm atomic.Bool
		go n.Default().Run(ctx, Callbacks{
			OnPrepare: func(context.Context) error {
				time.Sleep(100 * time.Millisecond)
				warm.Store(true)
				return nil
			},
			OnStartedLeading: func(ctx context.Context, _ *Leadership) error {
				if !warm.Swap(false) {
					time.Sleep(100 * time.Millisecond)
				}
				began <- time.Now()
				<-ctx.Done()
				stopped <- time.Now()
				return nil
			},
		})
	}
	<-began
	var gaps []time.Duration
	for b.Loop() {
		var i int
		require.Eventually(b, func() bool {
			i = slices.IndexFunc(nodes, (*Node).IsLeader)
			return i >= 0 && nodes[i].Status().Groups[0].Successor != ""
		}, 20*time.Second, time.Millisecond)
		require.NoError(b, nodes[i].Transfer(b.Context(), "")) // perhaps before it is prepared
		gaps = append(gaps, -(<-stopped).Sub(<-began))
	}
	slices.Sort(gaps)
	b.ReportMetric(float64(gaps[len(gaps)/2].Microseconds())/1000, "gap-ms")
	b.ReportMetric(float64(gaps[len(gaps)-1].Microseconds())/1000, "worst-gap-ms")
}

// BenchmarkElections is what one election, and what a hundred, cost beside the default one on
// three nodes on loopback: frames and bytes a second that one node sends.
func BenchmarkElections(b *testing.B) {
	voters := []NodeID{"a", "b", "c"}
	for _, count := range []int{1, 100} {
		b.Run(fmt.Sprintf("elections=%d", count), func(b *testing.B) {
			a := start(b, "a", voters)
			join := a.Status().GossipAddr
			nodes := []*Node{a, start(b, "b", voters, join), start(b, "c", voters, join)}
			var all []*Election
			for i := range count {
				for _, n := range nodes {
					e, err := n.Election(fmt.Sprintf("g%d", i), ElectionConfig{NotCandidate: n != a})
					require.NoError(b, err)
					all = append(all, e)
				}
			}
			require.Eventually(b, func() bool {
				return !slices.ContainsFunc(all, func(e *Election) bool { return e.Status().Leader != "a" })
			}, time.Minute, 50*time.Millisecond)
			traffic := func() (frames, bytes uint64) {
				for _, l := range a.mesh.Links() {
					frames, bytes = frames+l.FramesOut, bytes+l.BytesOut
				}
				return frames, bytes
			}
			frames, bytes := traffic()
			began := time.Now()
			for b.Loop() {
				time.Sleep(2 * time.Second)
			}
			framesNow, bytesNow := traffic()
			b.ReportMetric(float64(framesNow-frames)/time.Since(began).Seconds(), "frames/s")
			b.ReportMetric(float64(bytesNow-bytes)/time.Since(began).Seconds(), "bytes/s")
		})
	}
}

// BenchmarkOpenAndClose opens an election and closes it again, on a real disk, among many that are
// open and led. The time must not depend on their number.
func BenchmarkOpenAndClose(b *testing.B) {
	for _, open := range []int{0, 10_000} {
		b.Run(fmt.Sprint(open), func(b *testing.B) {
			n := leadingAlone(b)
			for i := range open {
				_, err := n.Election(fmt.Sprint("open", i), ElectionConfig{})
				require.NoError(b, err)
			}
			name := 0
			b.ReportAllocs()
			for b.Loop() {
				name++
				e, err := n.Election(fmt.Sprint("x", name), ElectionConfig{NotCandidate: true})
				if err == nil {
					err = e.Close(context.Background())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

//go:build unix

package cluster

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkElections runs three nodes on loopback with one and with a hundred
// elections beside the default one, for two seconds of steady leadership, and
// tells what that costs each node: frames and bytes a second on all its links,
// how often its threads go to sleep, and processor time.
func BenchmarkElections(b *testing.B) {
	for _, count := range []int{1, 100} {
		b.Run(fmt.Sprintf("elections=%d", count), func(b *testing.B) { measureElections(b, count) })
	}
}

func measureElections(b *testing.B, count int) {
	var nodes []*Node
	voters := []NodeID{"a", "b", "c"}
	for _, id := range voters {
		cfg := Config{Node: id, Voters: voters, DataDir: b.TempDir(), GossipAddr: "127.0.0.1:0",
			MeshAddr: "127.0.0.1:0"}
		if len(nodes) > 0 {
			cfg.Join = []string{nodes[0].Status().GossipAddr}
		}
		n, err := Start(b.Context(), cfg)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, n.Close(context.Background())) })
		nodes = append(nodes, n)
	}
	var all []*Election
	for i := range count {
		for _, n := range nodes {
			e, err := n.Election(fmt.Sprintf("g%d", i), ElectionConfig{NotCandidate: n != nodes[0]})
			require.NoError(b, err)
			all = append(all, e)
		}
	}
	require.Eventually(b, func() bool {
		return !slices.ContainsFunc(all, func(e *Election) bool { return e.Status().Leader != "a" })
	}, time.Minute, 50*time.Millisecond)
	const window = 2 * time.Second
	var frames, bytes uint64
	var used usage
	for b.Loop() {
		framesBefore, bytesBefore := traffic(nodes[0])
		before := measureUsage()
		time.Sleep(window)
		used = measureUsage().since(before)
		framesAfter, bytesAfter := traffic(nodes[0])
		frames, bytes = framesAfter-framesBefore, bytesAfter-bytesBefore
	}
	perNode := float64(len(nodes)) * window.Seconds()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(used.waits)/perNode, "waits/s")
	b.ReportMetric(used.cpu.Seconds()*1000/perNode, "cpu-ms/s")
	b.ReportMetric(float64(frames)/window.Seconds(), "frames/s")
	b.ReportMetric(float64(bytes)/window.Seconds(), "bytes/s")
}

// traffic is what a node has sent on all its links.
func traffic(n *Node) (frames, bytes uint64) {
	for _, l := range n.mesh.Links() {
		frames, bytes = frames+l.FramesOut, bytes+l.BytesOut
	}
	return frames, bytes
}

package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func leadingAlone(b *testing.B) *Node {
	n, err := Start(b.Context(), Config{
		Node: "a", Voters: []NodeID{"a"}, DataDir: b.TempDir(), GossipAddr: "127.0.0.1:0",
		MeshAddr: "127.0.0.1:0",
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, n.Close(context.Background())) })
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

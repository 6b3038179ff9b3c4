package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
)

// BenchmarkStatus is what it costs to look at a node with many elections, without other voters. Of
// that, held-us is the longest time for which another request had to wait for the driver.
func BenchmarkStatus(b *testing.B) {
	n := start(b, "a", []NodeID{"a", "b", "c"})
	open := 1
	for _, count := range []int{32, 10_000, 100_000} {
		for ; open < count; open++ {
			_, err := n.Election(fmt.Sprintf("tenant-%06d", open), ElectionConfig{
				NotCandidate: true, Timing: elector.Article(),
			})
			require.NoError(b, err)
		}
		for _, look := range []struct {
			name string
			at   func() any
		}{
			{"all", func() any { return n.Status() }},
			{"stats", func() any { return n.Stats() }},
			{"sums", func() any { return n.StatusOf(Selection{Few: 32, Top: 10}) }},
			{"page", func() any { return n.StatusOf(Selection{After: "tenant-", Limit: 100}) }},
			{"one", func() any { return n.StatusOf(Selection{Group: DefaultGroup}) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", look.name, count), func(b *testing.B) {
				b.ReportAllocs()
				var held time.Duration
				var bytes int
				for b.Loop() {
					over, ended := make(chan struct{}), make(chan time.Duration)
					go func() { ended <- longestWait(n, over) }()
					seen := look.at()
					close(over)
					held = max(held, <-ended)
					text, _ := json.Marshal(seen)
					bytes = len(text)
				}
				b.ReportMetric(float64(held.Microseconds()), "held-us")
				b.ReportMetric(float64(bytes), "bytes")
			})
		}
	}
}

// longestWait asks the driver again and again, and returns the longest time that it took.
func longestWait(n *Node, over <-chan struct{}) (longest time.Duration) {
	for {
		began := time.Now()
		_ = n.loop.Do(context.Background(), func(*loop.Driver) error { return nil })
		longest = max(longest, time.Since(began))
		select {
		case <-over:
			return longest
		case <-time.After(100 * time.Microsecond):
		}
	}
}

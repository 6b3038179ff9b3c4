package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// BenchmarkNotification is how long after a change of leadership an application
// knows of it, from the moment at which the driver tells: a subscriber, and the
// guarded work whose context is canceled when the node is to step down.
func BenchmarkNotification(b *testing.B) {
	timing := elector.Article()
	timing.MaxRandomWait = time.Millisecond
	n, err := Start(b.Context(), Config{
		Node: "a", Voters: []NodeID{"a"}, DataDir: b.TempDir(), GossipAddr: "127.0.0.1:0",
		MeshAddr: "127.0.0.1:0",
		Election: ElectionConfig{Timing: timing, AwaitCampaign: true},
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, n.Close(context.Background())) })
	e := n.Default()
	sub := n.Subscribe(16)
	defer sub.Close()
	var told, stopped time.Duration
	rounds := 0
	for b.Loop() {
		l, err := e.Campaign(b.Context())
		require.NoError(b, err)
		told += untilTold(sub)
		began := time.Now()
		go e.StepDown(context.Background(), 0)
		<-l.Context().Done()
		stopped += time.Since(began)
		l.Release()
		rounds++
	}
	b.ReportMetric(float64(told.Nanoseconds())/float64(rounds), "event-ns")
	b.ReportMetric(float64(stopped.Nanoseconds())/float64(rounds), "step-down-to-cancel-ns")
}

// untilTold is how old the news of an election is when a subscriber gets it.
func untilTold(sub *Subscription) time.Duration {
	for event := range sub.Events() {
		if event.To == elector.Leader {
			return time.Since(event.Time)
		}
	}
	return 0
}

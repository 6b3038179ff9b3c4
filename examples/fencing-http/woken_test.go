package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// direct takes requests to a resource without a network.
type direct struct{ resource *Resource }

// RoundTrip answers at once.
func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.resource.ServeHTTP(w, req)
	return w.Result(), nil
}

// TestAWokenLeaderIsRefused stops the leader between taking a token and writing,
// until another node leads and has written: three nodes, in virtual time.
func TestAWokenLeaderIsRefused(t *testing.T) {
	ids := []cluster.NodeID{"a", "b", "c"}
	clustertest.Run(t, ids, func(t *testing.T, c *clustertest.Cluster) {
		var log testkit.Buffer
		lines := hclog.New(&hclog.LoggerOptions{Output: &log})
		resource, err := OpenResource(filepath.Join(t.TempDir(), "value.json"), lines)
		require.NoError(t, err)
		http.DefaultClient.Transport = direct{resource}
		defer func() { http.DefaultClient.Transport = nil }()
		ran := make(chan error, len(ids))
		writers := map[cluster.NodeID]writer{}
		for _, id := range ids {
			w := writer{url: "http://resource/value", every: time.Second, log: lines.With("node", id)}
			writers[id] = w
			go func() {
				ran <- c.Node(id).Default().Run(t.Context(), cluster.Callbacks{OnStartedLeading: w.lead})
			}()
		}
		fence := func() lsn.LSN {
			resource.mu.Lock()
			defer resource.mu.Unlock()
			return resource.fence.Newest()
		}
		old := c.AwaitLeader()
		c.Await("its write", func() bool { return !fence().IsZero() })
		held, err := c.Node(old).NextLSN()
		require.NoError(t, err)
		c.Pause(old)
		c.Await("another leader's write", func() bool { return fence().Term > held.Term })
		newest := fence()
		c.Resume(old)
		writers[old].send(t.Context(), held)
		refused := " token=" + held.String() + " newest=" + newest.String()
		const why = "refused: a newer leader has written:"
		require.Contains(t, log.String(), why+" node="+string(old)+refused)
		require.Contains(t, log.String(), why+refused, "the resource tells both tokens, too")
		require.Equal(t, newest, fence())
		for _, id := range ids {
			c.Stop(id)
			require.ErrorIs(t, <-ran, cluster.ErrClosed)
		}
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.AwaitCampaign = true }))
}

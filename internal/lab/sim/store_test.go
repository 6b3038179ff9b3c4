package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
)

// A member that is cut off from a quorum is cut off from the store, too, and loses its lease;
// one that keeps a quorum keeps the store.
func TestTheStoreIsWhereAQuorumIs(t *testing.T) {
	cfg := cluster(1, 5)
	cfg.Algorithm = kubernetes.Kubernetes
	s := start(t, cfg)
	require.NoError(t, s.RunUntil(time.Minute))
	first := leader(t, s)
	ids := s.Nodes()[:5]
	for i, id := range ids {
		if id == first {
			ids = append(ids[:i:i], ids[i+1:]...)
			break
		}
	}
	require.NoError(t, s.Cut(first, ids[0]))
	require.NoError(t, s.Cut(ids[0], first))
	require.NoError(t, s.RunUntil(2*time.Minute))
	require.Equal(t, first, leader(t, s), "it reaches four of five")
	require.NoError(t, s.Partition(ids))
	require.NoError(t, s.RunUntil(3*time.Minute))
	require.NotEqual(t, first, leader(t, s), "it is alone")
}

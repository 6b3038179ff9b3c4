package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

func TestASoleVoterPublishes(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		l, err := c.Node("a").Default().Campaign(t.Context())
		require.NoError(t, err)
		none, err := l.Record(t.Context())
		require.NoError(t, err)
		require.Equal(t, cluster.Record{}, none)
		first, err := l.Publish(t.Context(), []byte("x"))
		require.NoError(t, err)
		r, err := l.Record(t.Context())
		require.NoError(t, err)
		require.Equal(t, "x", string(r.Value))
		require.Equal(t, first, r.ValueLSN)
		c.Restart("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l, err = c.Node("a").Default().Campaign(ctx)
		require.NoError(t, err)
		r, err = l.Record(ctx)
		require.NoError(t, err)
		require.Equal(t, "x", string(r.Value))
		t.Logf("%+v", c.Node("a").Status().Groups[0].Record)
	})
}

package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The end of one election does not touch those that are open and have no term yet.
func TestAnElectionWithoutATermOutlivesTheEndOfAnother(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		old := c.open("old", nil)
		time.Sleep(election)
		for range 3 { // raise its term
			require.NoError(t, old[c.leader("old").ID()].Transfer(t.Context(), ""))
			time.Sleep(time.Second)
		}
		c.open("new", nil)
		for _, e := range old {
			require.NoError(t, e.Close(t.Context()))
		}
		time.Sleep(election)
		c.leader("new")
	})
}

package netmesh

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// Whoever is no voter may come and go as it likes, and fills no log.
func TestLinksOfStrangersThatComeAndGoFillNoLog(t *testing.T) {
	plainOnly(t)
	var log bytes.Buffer
	a := start(t, "a", func(c *Config) {
		c.Facts = Facts{Voters: []string{"a", "b"}, VoterCount: 2}
		c.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: &log})
	})
	for i := range 20 {
		h := helloFrom(a)
		h.Node = fmt.Sprint("guest", i)
		id := uuid.NewSHA1(uuid.Nil, []byte(h.Node))
		h.Identity = id[:]
		s := intrude(t, a)
		s.link(h)
		a.sees(t, elector.NodeID(h.Node), "up 1")
		require.NoError(t, s.conn.Close())
		require.Eventually(t, func() bool { return len(a.all(elector.NodeID(h.Node))) > 1 }, patience,
			glance)
	}
	require.NoError(t, a.Mesh.Close(t.Context()))
	require.Equal(t, 1, strings.Count(log.String(), "link down"), log.String())
}

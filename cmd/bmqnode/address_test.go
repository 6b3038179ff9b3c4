package main_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// What a node tells the others is the address that was set, or, where it listens
// on every interface, its port at the address of its gossip.
func TestNodesAreToldReachableMeshAddresses(t *testing.T) {
	t.Parallel()
	options := nodes.Quick()
	maps.Copy(options, map[string]any{"mesh-addr": "0.0.0.0:0", "insecure": true})
	s := nodes.LayOut(t, options, procs.Numbered(3)...)
	// Nobody reaches n1 there; it reaches the others, which is enough for a link.
	nodes.Configure(t, s.Nodes()[0], `advertise-mesh: "127.0.0.1:9"`)
	require.NoError(t, s.Start())
	s.Agree(s.Nodes(), nil)
	st, err := s.Nodes()[2].Status(t.Context())
	require.NoError(t, err)
	for _, m := range st.Members {
		if m.Node == "n1" {
			require.Equal(t, "127.0.0.1:9", m.MeshAddr)
		} else {
			require.Regexp(t, `^127\.0\.0\.1:\d+$`, m.MeshAddr)
		}
	}
}

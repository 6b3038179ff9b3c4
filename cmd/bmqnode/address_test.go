package main_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// Every node stops, and comes back at another address; each knows only where
// the first one is now.
func TestEveryAddressChangesAtOnce(t *testing.T) {
	t.Parallel()
	s, before := elected(t, 3)
	// Laid out while the old ones are still held, it gets others.
	moved, err := procs.New(procs.Config{Binary: binary, Names: procs.Numbered(3), Dir: s.dir,
		BasePort: basePort, Options: quick()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
	require.NotEqual(t, s.Nodes()[0].MeshAddr, moved.Nodes()[0].MeshAddr)
	s.Mesh = moved // stopped at the end of the test
	require.NoError(t, moved.Start())
	s.agree(moved.Nodes(), above(before.Term))
}

// A node that is started first waits for those whom it was told to join.
func TestNodeStartedFirstWaitsForTheOthers(t *testing.T) {
	t.Parallel()
	s := layOut(t, 3, quick())
	nodes := s.Nodes()
	require.NoError(t, nodes[2].Start())
	s.eventually("it says whom it waits for", func() bool {
		st, err := nodes[2].Status(context.Background())
		return err == nil && st.Groups[0].Explanation ==
			"no leader: 2 of 3 voters needed, 1 reachable (n1: never heard of, n2: never heard of)"
	})
	require.NoError(t, nodes[0].Start())
	s.agree([]*procs.Node{nodes[0], nodes[2]}, nil)
	require.NoError(t, nodes[1].Start())
	s.agree(nodes, nil)
}

func TestMeshOverIPv6(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 loopback here: %s", err)
	}
	require.NoError(t, l.Close())
	options := quick()
	maps.Copy(options, map[string]any{"gossip-addr": "[::1]:0", "mesh-addr": "[::1]:0",
		"voters": []string{"n1"}})
	s := play(t, 1, options)
	s.agree(s.Nodes(), nil)
	st, err := s.Nodes()[0].Status(context.Background())
	require.NoError(t, err)
	require.Contains(t, st.MeshAddr, "[::1]:")
	require.Contains(t, st.GossipAddr, "[::1]:")

	options = quick()
	maps.Copy(options, map[string]any{
		"node": "n2", "gossip-addr": "[::1]:0", "mesh-addr": "[::1]:0", "voters": []string{"n1"},
		"join": []string{st.GossipAddr},
	})
	observer := play(t, 1, options)
	observer.eventually("the observer follows", func() bool {
		st, err := observer.Nodes()[0].Status(context.Background())
		return err == nil && st.Groups[0].Leader == cluster.NodeID("n1")
	})
}

// What a node tells the others is the address that was set, or, where it listens
// on every interface, its port at the address of its gossip.
func TestNodesAreToldReachableMeshAddresses(t *testing.T) {
	t.Parallel()
	options := quick()
	maps.Copy(options, map[string]any{"mesh-addr": "0.0.0.0:0", "insecure": true})
	s := layOut(t, 3, options)
	// Nobody reaches n1 there; it reaches the others, which is enough for a link.
	require.NoError(t, appendLine(s.Nodes()[0].ConfigFile, `advertise-mesh: "127.0.0.1:9"`))
	require.NoError(t, s.Start())
	s.agree(s.Nodes(), nil)
	st, err := s.Nodes()[2].Status(context.Background())
	require.NoError(t, err)
	for _, m := range st.Members {
		if m.Node == "n1" {
			require.Equal(t, "127.0.0.1:9", m.MeshAddr)
		} else {
			require.Regexp(t, `^127\.0\.0\.1:\d+$`, m.MeshAddr)
		}
	}
}

func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Close())
}

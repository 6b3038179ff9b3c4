package main_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// stranger is a member of a mesh that the test plays. It hears and says nothing.
type stranger struct{}

func (stranger) LinkUp(netmesh.PeerInfo)                          {}
func (stranger) LinkDown(elector.NodeID, elector.Evidence)        {}
func (stranger) Died(elector.NodeID, elector.Proof)               {}
func (stranger) Received(elector.NodeID, string, elector.Message) {}

// intrude lets a stranger connect to a node until the test ends.
func intrude(t testing.TB, at *procs.Node, as netmesh.Config) *netmesh.Mesh {
	as.Node, as.Identity, as.Boot, as.Bind = "stranger", uuid.New(), 1, "127.0.0.1:0"
	m, err := netmesh.Listen(as, stranger{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, m.Close(ctx))
	})
	m.AddPeer(elector.NodeID(at.Name), at.MeshAddr)
	return m
}

// A stranger that says to every node that the terms are used up is heard by none.
func TestAStrangerDoesNotUseUpTheTerms(t *testing.T) {
	t.Parallel()
	s, before := elected(t, 3)
	for _, n := range s.Nodes() {
		m := intrude(t, n, netmesh.Config{Cluster: cluster.DefaultCluster})
		for kind := elector.ElectionScouting; kind.Valid(); kind++ {
			msg := elector.Message{Kind: kind, Term: lsn.MaxTerm - 1, ProposedTerm: lsn.MaxTerm - 1}
			require.Eventually(t, func() bool {
				return m.Send(elector.NodeID(n.Name), cluster.DefaultGroup, msg)
			}, patience, 10*time.Millisecond)
		}
	}
	require.NoError(t, s.node(before.Leader).Kill())
	after := s.agree(s.others(before.Leader), above(before.Term))
	require.Less(t, after.Term, before.Term+1000)
}

// fast is a clock that gains a twentieth.
type fast struct{ clock.Clock }

func (f fast) Now() time.Duration { return f.Clock.Now() / 20 * 21 }

// TestAFastClockRaisesItsAlert takes the pings of half a minute.
func TestAFastClockRaisesItsAlert(t *testing.T) {
	if os.Getenv("ALERTS_LONG") == "" {
		t.Skip("takes half a minute; set ALERTS_LONG=1")
	}
	t.Parallel()
	s := play(t, 1, nil)
	w := watch(t, map[string][]string{"clocks": addresses(s.Nodes())})
	intrude(t, s.Nodes()[0], netmesh.Config{Cluster: cluster.DefaultCluster,
		Clock: fast{clock.System()}})
	require.Eventually(t, func() bool {
		return len(w.query(`bmqelect_link_up{peer="stranger"} == 1`, "peer")) == 1
	}, patience, 100*time.Millisecond)
	require.NotContains(t, w.firing("clocks"), "BmqelectClockAnomaly", "it takes a while to be sure")
	w.alarms("clocks", "ClockAnomaly")
}

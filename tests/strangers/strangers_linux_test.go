package strangers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// TestStrangersOnEveryPort: for STRANGERS_TIME strangers do all that they can on every port of
// every node, while clients ask. The leader stays, clients are answered, and no node uses up
// memory, descriptors or disk.
func TestStrangersOnEveryPort(t *testing.T) {
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv("STRANGERS_TIME"), "3s"))
	require.NoError(t, err)
	for _, how := range []string{"TLS", "insecure"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, a := besieged(t, how == "TLS")
			g := s.Agree(s.Nodes(), nil)
			a.listenIn(t, s.Nodes()[0])
			before := usageOf(s)
			most := before
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			defer cancel()
			var all sync.WaitGroup
			for _, n := range s.Nodes() {
				for range 2 {
					all.Go(func() { a.client(ctx, n) })
				}
				a.besiege(ctx, &all, n)
			}
			for ctx.Err() == nil {
				most = most.or(usageOf(s))
				time.Sleep(100 * time.Millisecond)
			}
			all.Wait()
			after := usageOf(s)
			t.Logf("%s\n%-12s %s\n%-12s %s\n%-12s %s", a, "before", before, "at most", most, "after", after)
			require.Empty(t, s.Transitions(nodes.LostLeadership), "the leader stays")
			s.Agree(s.Nodes(), nodes.Same(g))
			require.Less(t, most.descriptors, before.descriptors+maxDescriptors)
			require.Less(t, most.memory, 3*before.memory+maxGrowth)
			require.Less(t, most.disk, before.disk+maxDisk)
			require.Positive(t, a.answers.Load())
			require.Less(t, a.failures.Load(), a.answers.Load()/100+1, "requests that failed")
		})
	}
}

// What strangers may make a node use.
const (
	maxDescriptors = 64 + 2*256 + 32 + 512 // handshakes, links of guests, gossip streams, HTTP
	maxGrowth      = 64 << 20              // bytes
	maxDisk        = 8 << 20               // bytes: its log and its recording
)

// exposed prepares nodes whose admin side is on all addresses: the addresses are by node. With TLS,
// pki has certificates of the nodes and of others; else it is "".
func exposed(t testing.TB, options map[string]any, encrypted bool, count int, others ...string) (
	s *nodes.Scene, admin map[string]string, pki string,
) {
	host := nodes.OwnAddress(t)
	s, admin = nodes.LayOut(t, options, procs.Numbered(count)...), map[string]string{}
	if encrypted {
		pki = filepath.Join(t.TempDir(), "pki")
		names := append(procs.Numbered(count), others...)
		_, err := certs.Issue(pki, cluster.DefaultCluster, names, time.Hour)
		require.NoError(t, err)
	}
	for _, n := range s.Nodes() {
		line := "insecure: true"
		if encrypted {
			line = "tls-dir: " + filepath.Join(pki, n.Name)
		}
		admin[n.Name] = nodes.Publish(t, n, host, line)
	}
	return s, admin, pki
}

// besieged starts three nodes, and plans the attack.
func besieged(t *testing.T, encrypted bool) (*nodes.Scene, *attack) {
	options, a := nodes.Quick(), &attack{}
	delete(options, "rehearsal")
	// Strangers take processors, too, and a leader without any loses a short lease.
	options["lease"], options["heartbeat-miss-count"], options["initial-wait"] = "3s", 12, "3200ms"
	s, admin, pki := exposed(t, options, encrypted, 3, "stranger")
	a.admin = admin
	if encrypted {
		own := &netmesh.Credentials{}
		var err error
		own.Certificate, own.Roots, err = certs.Load(filepath.Join(pki, "stranger"))
		require.NoError(t, err)
		keys, err := certs.GossipKeys(pki)
		require.NoError(t, err)
		a.key, a.tls = keys[0], func() *netmesh.Credentials { return own }
	}
	require.NoError(t, s.Start())
	return s, a
}

// usage is the most that any node uses.
type usage struct{ memory, descriptors, disk, stalls int }

func (u usage) String() string {
	return fmt.Sprintf("%d MB of memory, %d descriptors, %d kB in its directory, %d timers late",
		u.memory>>20, u.descriptors, u.disk>>10, u.stalls)
}

func (u usage) or(v usage) usage {
	return usage{max(u.memory, v.memory), max(u.descriptors, v.descriptors), max(u.disk, v.disk),
		max(u.stalls, v.stalls)}
}

func usageOf(s *nodes.Scene) (most usage) {
	for _, n := range s.Nodes() {
		var u usage
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Pid()))
		require.NoError(s.T, err)
		_, resident, _ := strings.Cut(string(status), "VmRSS:")
		_, err = fmt.Sscan(resident, &u.memory)
		require.NoError(s.T, err)
		u.memory <<= 10
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Pid()))
		require.NoError(s.T, err)
		u.descriptors = len(open)
		err = filepath.Walk(n.Dir, func(_ string, info os.FileInfo, err error) error {
			if err == nil {
				u.disk += int(info.Size())
			}
			return nil // a file that was replaced
		})
		require.NoError(s.T, err)
		st, err := n.Status(s.T.Context())
		require.NoError(s.T, err)
		u.stalls = int(st.Stalls)
		most = most.or(u)
	}
	return most
}

// attack is what strangers know, and what became of it.
type attack struct {
	key      []byte // of gossip; nil without TLS
	tls      func() *netmesh.Credentials
	admin    map[string]string // of each node, off loopback
	recorded [][]byte          // what a member sent in a handshake, a connection each

	answers, failures atomic.Int64 // to clients
	dials, refused    atomic.Int64
	packets, ghosts   atomic.Int64
	failed            atomic.Value
}

func (a *attack) String() string {
	return fmt.Sprintf("clients: %d answers, %d errors (%v); strangers: %d connections, %d not made, "+
		"%d packets, %d invented members", a.answers.Load(), a.failures.Load(), a.failed.Load(),
		a.dials.Load(), a.refused.Load(), a.packets.Load(), a.ghosts.Load())
}

// client asks a node, from this machine, as often as it answers.
func (a *attack) client(ctx context.Context, n *procs.Node) {
	c := n.Client()
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		_, err := c.Status(ctx)
		switch {
		case err == nil:
			a.answers.Add(1)
		case ctx.Err() == nil:
			a.failures.Add(1)
			a.failed.Store(err)
		}
	}
}

// A stranger that says to every node that the terms are used up is heard by none.
func TestAStrangerDoesNotUseUpTheTerms(t *testing.T) {
	t.Parallel()
	s, before := nodes.Elected(t, 3)
	for _, n := range s.Nodes() {
		m := nodes.Intrude(t, n, netmesh.Config{Cluster: cluster.DefaultCluster}, nodes.Silent{})
		for kind := elector.ElectionScouting; kind.Valid(); kind++ {
			msg := elector.Message{Kind: kind, Term: lsn.MaxTerm - 1, ProposedTerm: lsn.MaxTerm - 1}
			s.Eventually("it is sent", func() bool {
				return m.Send(elector.NodeID(n.Name), cluster.DefaultGroup, msg)
			})
		}
	}
	require.NoError(t, s.Named(before.Leader).Kill())
	after := s.Agree(s.Others(before.Leader), nodes.Above(before.Term))
	require.Less(t, after.Term, before.Term+1000)
}

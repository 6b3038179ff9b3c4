package main_test

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

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
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
			g := s.agree(s.Nodes(), nil)
			a.listenIn(t, s.Nodes()[0])
			before := s.usage()
			most := before
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			defer cancel()
			var all sync.WaitGroup
			for _, n := range s.Nodes() {
				all.Go(func() { a.clients(ctx, n) })
				a.besiege(ctx, &all, n)
			}
			for ctx.Err() == nil {
				most = most.or(s.usage())
				time.Sleep(100 * time.Millisecond)
			}
			all.Wait()
			after := s.usage()
			t.Logf("%s\n%-12s %s\n%-12s %s\n%-12s %s", a, "before", before, "at most", most, "after", after)
			require.Empty(t, s.transitions(lostLeadership), "the leader stays")
			s.agree(s.Nodes(), same(g))
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

// besieged starts three nodes whose admin side is on all addresses, and plans the attack.
func besieged(t *testing.T, encrypted bool) (*scene, *attack) {
	options, host := quick(), ownAddress(t)
	delete(options, "rehearsal")
	// Strangers take processors, too, and a leader without any loses a short lease.
	options["lease"], options["heartbeat-miss-count"], options["initial-wait"] = "3s", 12, "3200ms"
	s, a := layOut(t, 3, options), &attack{admin: map[string]string{}}
	pki := filepath.Join(t.TempDir(), "pki")
	if encrypted {
		issued, err := certs.Issue(pki, "", []string{"n1", "n2", "n3", "stranger"}, time.Hour)
		require.NoError(t, err)
		own := &netmesh.Credentials{}
		own.Certificate, own.Roots, err = certs.Load(issued[3].Dir)
		require.NoError(t, err)
		keys, err := certs.GossipKeys(pki)
		require.NoError(t, err)
		a.key, a.tls = keys[0], func() *netmesh.Credentials { return own }
	}
	for _, n := range s.Nodes() {
		line := "insecure: true"
		if encrypted {
			line = "tls-dir: " + filepath.Join(pki, n.Name)
		}
		a.admin[n.Name] = publish(t, n, host, line)
	}
	require.NoError(t, s.Start())
	return s, a
}

// usage is what the node that uses most of it uses.
type usage struct{ memory, descriptors, disk, stalls int }

func (u usage) String() string {
	return fmt.Sprintf("%d MB of memory, %d descriptors, %d kB in its directory, %d timers late",
		u.memory>>20, u.descriptors, u.disk>>10, u.stalls)
}

func (u usage) or(v usage) usage {
	return usage{max(u.memory, v.memory), max(u.descriptors, v.descriptors), max(u.disk, v.disk),
		max(u.stalls, v.stalls)}
}

func (s *scene) usage() (most usage) {
	for _, n := range s.Nodes() {
		var u usage
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Pid()))
		require.NoError(s.t, err)
		_, resident, _ := strings.Cut(string(status), "VmRSS:")
		_, err = fmt.Sscan(resident, &u.memory)
		require.NoError(s.t, err)
		u.memory <<= 10
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Pid()))
		require.NoError(s.t, err)
		u.descriptors = len(open)
		err = filepath.Walk(n.Dir, func(_ string, info os.FileInfo, err error) error {
			if err == nil {
				u.disk += int(info.Size())
			}
			return nil // a file that was replaced
		})
		require.NoError(s.t, err)
		st, err := n.Status(s.t.Context())
		require.NoError(s.t, err)
		u.stalls = int(st.Stalls)
		most = most.or(u)
	}
	return most
}

// clients ask a node, from this machine, as often as it answers.
func (a *attack) clients(ctx context.Context, n *procs.Node) {
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
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
		})
	}
	all.Wait()
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

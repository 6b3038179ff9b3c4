package gossip

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

func TestThreeNodesFindEachOtherFromOneAddress(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", joining(a.gossipAddr()))
	c := start(t, "c", joining(a.gossipAddr()))
	requireTogether(t, a, b, c)
	require.Equal(t, b.Local(), c.requireState(StateAlive, "b"))
}

func TestNodeStartedFirstFindsTheOneItWaitsFor(t *testing.T) {
	later := freeAddr(t)
	a := start(t, "a", joining(later))
	b := start(t, "b", bound(later))
	requireTogether(t, a, b)
}

func TestKnownPeersReplaceJoinAddresses(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", knowing("no address at all", a.gossipAddr()))
	requireTogether(t, a, b)
}

func TestWhereMembersAreIsSavedForTheNextStart(t *testing.T) {
	saved := make(chan []string, 100)
	a := start(t, "a", func(c *Config) {
		c.Save = func(addrs []string) error { saved <- addrs; return nil }
	})
	b := start(t, "b", joining(a.gossipAddr()))
	select {
	case addrs := <-saved:
		require.Equal(t, []string{b.gossipAddr()}, addrs)
	case <-time.After(patience):
		require.Fail(t, "nothing was saved")
	}
	require.NoError(t, a.Close(context.Background()))
	<-a.Saved()
}

func TestANodeIsFoundAtTheAddressThatItAdvertises(t *testing.T) {
	for bind, advertise := range map[string]string{
		"localhost:0": "", "[::1]:0": "", "0.0.0.0:0": "127.0.0.1:0",
	} {
		t.Run(bind, func(t *testing.T) {
			ln, err := net.Listen("tcp", bind)
			if err != nil {
				t.Skip(err) // this machine has no IPv6
			}
			require.NoError(t, ln.Close())
			here := func(c *Config) { c.Bind, c.Advertise = bind, advertise }
			a := start(t, "a", here)
			b := start(t, "b", here, joining(a.gossipAddr()))
			requireTogether(t, a, b)
			at := netip.MustParseAddrPort(a.gossipAddr()).Addr()
			require.True(t, at.IsLoopback(), at)
			require.Equal(t, strings.HasPrefix(bind, "["), at.Is6())
		})
	}
}

func TestKilledNodeIsTakenInAtItsNewAddress(t *testing.T) {
	a := start(t, "a", deathSoon)
	b := start(t, "b", joining(a.gossipAddr()), deathSoon)
	c := start(t, "c", joining(a.gossipAddr()), deathSoon)
	requireTogether(t, a, b, c)
	b.kill()
	b = start(t, "b", joining(a.gossipAddr()), deathSoon)
	requireTogether(t, a, b, c)
}

func TestNewAddressIsFoundWithoutThePeriodicSync(t *testing.T) {
	noSync := func(c *Config) { c.Timing.Sync = time.Hour }
	// Probes of the restarted node might spread the news as well.
	noProbe := func(c *Config) { c.Timing.Probe = time.Hour }
	a := start(t, "a", noSync, deathSoon)
	b := start(t, "b", joining(a.gossipAddr()), noSync, deathSoon)
	requireTogether(t, a, b)
	b.kill()
	b = start(t, "b", joining(a.gossipAddr()), noSync, noProbe)
	requireTogether(t, a, b)
}

func TestDeadMemberIsLookedForWhereItWas(t *testing.T) {
	at := freeAddr(t)
	a := start(t, "a", deathSoon)
	b := start(t, "b", bound(at), joining(a.gossipAddr()), deathSoon)
	requireTogether(t, a, b)
	b.kill()
	a.requireState(StateDead, "b")
	b = start(t, "b", bound(at), deathSoon) // it knows nobody now
	requireTogether(t, a, b)
}

// directory is a name service whose answers change.
type directory struct {
	mu    sync.Mutex
	addrs map[string]string
}

func (d *directory) set(name, addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addrs[name] = addr
}

func (d *directory) resolve(ctx context.Context, name string) ([]netip.AddrPort, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if addr, ok := d.addrs[name]; ok {
		name = addr
	}
	return onlyLiterals(ctx, name)
}

func TestEveryNodeMovesAtOnce(t *testing.T) {
	dir := &directory{addrs: map[string]string{}}
	names := []string{"n0:1", "n1:1", "n2:1"}
	startNamed := func(name string) *peer {
		p := start(t, elector.NodeID(name), joining(names...),
			func(c *Config) { c.resolve = dir.resolve }, deathSoon)
		dir.set(name, p.gossipAddr())
		return p
	}
	var nodes [3]*peer
	for i, name := range names {
		nodes[i] = startNamed(name)
	}
	watcher := start(t, "watcher", joining(names...), func(c *Config) { c.resolve = dir.resolve },
		deathSoon)
	requireTogether(t, nodes[0], nodes[1], nodes[2], watcher)
	for _, n := range nodes {
		n.kill()
	}
	for i, name := range names {
		nodes[i] = startNamed(name)
	}
	requireTogether(t, nodes[0], nodes[1], nodes[2], watcher)
}

func TestTwoIslandsHeal(t *testing.T) {
	bridge := freeAddr(t)
	a := start(t, "a")
	b := start(t, "b", joining(a.gossipAddr(), bridge))
	c := start(t, "c")
	d := start(t, "d", joining(c.gossipAddr()))
	requireTogether(t, a, b)
	requireTogether(t, c, d)
	e := start(t, "e", bound(bridge), joining(d.gossipAddr()))
	requireTogether(t, a, b, c, d, e)
}

// The second process does not become a member; the mesh decides which of the two it refuses.
func TestTwoProcessesWithOneNameDoNotFlap(t *testing.T) {
	var log lines
	a := start(t, "a", log.option)
	b := start(t, "b", joining(a.gossipAddr()))
	requireTogether(t, a, b)
	double := start(t, "b", joining(a.gossipAddr()))
	require.Contains(t, double.requireState(StateAlive, "a").GossipAddr, a.gossipAddr(),
		"it finds the members, whose mesh refuses it")
	require.Never(t, func() bool {
		return len(a.seen(StateDead, "b")) > 0 || log.Count("\n") > 0
	}, 5*fast().Rejoin, 10*time.Millisecond)
	require.Equal(t, b.gossipAddr(), a.view()["b"])
}

func TestSecondProcessGetsTheNameWhenTheFirstEnds(t *testing.T) {
	t.Parallel()
	a := start(t, "a", probing(500*time.Millisecond))
	b := start(t, "b", joining(a.gossipAddr()), probing(500*time.Millisecond))
	requireTogether(t, a, b)
	double := start(t, "b", joining(a.gossipAddr()), probing(500*time.Millisecond))
	double.requireState(StateAlive, "a")
	b.kill()
	requireTogether(t, a, double)
}

func TestForeignClusterStaysOutside(t *testing.T) {
	a := start(t, "a")
	stranger := start(t, "s", joining(a.gossipAddr()), func(c *Config) { c.Cluster = "other" })
	b := start(t, "b", joining(a.gossipAddr()))
	requireTogether(t, a, b)
	require.Never(t, func() bool { return len(stranger.view()) > 0 || len(a.view()) > 1 },
		5*fast().Rejoin, 10*time.Millisecond)
}

func TestChangedMetadataReachesEverybody(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", joining(a.gossipAddr()))
	c := start(t, "c", joining(a.gossipAddr()))
	requireTogether(t, a, b, c)
	next := Meta{MeshAddr: "[::1]:2000", AdminAddr: "127.0.0.1:3", Version: "2"}
	b.update(next)
	for _, p := range []*peer{a, c} {
		require.Eventually(t, func() bool { return p.hears("b", "2") }, patience, 5*time.Millisecond)
	}
}

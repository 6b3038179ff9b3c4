package netmesh

import (
	stdnet "net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/memnet"
	"github.com/stretchr/testify/require"
)

// advertises makes a node tell an address.
func advertises(addr string) func(*Config) { return func(c *Config) { c.Advertise = addr } }

// TestAddressThatNobodyReachesIsFoundByBothEnds: b dials a, and a would find
// nobody at the address that b tells.
func TestAddressThatNobodyReachesIsFoundByBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net, advertises("b:7999")))
		a.AddPeer("b", "b:7999")
		b.AddPeer("a", "a:7000")
		synctest.Wait()
		require.Empty(t, a.Findings(), "one failure is none")
		time.Sleep(10 * time.Second)
		f := a.mustFind(t, FindingAdvertiseUnreachable, "b", `nobody reaches it at b:7999`, "refused")
		b.mustFind(t, FindingAdvertiseUnreachable, "a", `node "a" does not reach this node, "b", at b:7999`, "refused")
		require.Contains(t, f.Advice, "advertises")
		require.Equal(t, []string{"up 1"}, a.all("b"), "the link stands")
		require.False(t, a.trustsTheEndOf("b"), "what refuses while b lives proves nothing")

		time.Sleep(time.Hour)
		require.Equal(t, f, a.mustFind(t, FindingAdvertiseUnreachable, "b"))
		opened, err := net.Host("b").Listen("b:7999")
		require.NoError(t, err)
		forwardFrom(t, opened, func() (stdnet.Conn, error) { return net.Host("b").Dial(t.Context(), "b:7000") })
		time.Sleep(reachPause)
		require.Empty(t, append(a.Findings(), b.Findings()...), "somebody opened the way")
		require.Equal(t, []string{"up 1"}, append(a.all("b"), b.all("a")[1:]...), "asking makes no link")
	})
}

// TestNodeThatWasDialedBeforeItListenedIsReachable: that is how clusters start.
func TestNodeThatWasDialedBeforeItListenedIsReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a := start(t, "a", onHost(net))
		a.AddPeer("b", "b:7000")
		time.Sleep(time.Minute)
		require.Contains(t, a.Links()[0].LastErr, "refused")
		b := start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		for range 60 {
			time.Sleep(time.Second)
			require.Empty(t, append(a.Findings(), b.Findings()...))
		}
		require.Empty(t, a.Counters())
		require.Empty(t, b.Counters(), "whoever only asks is no stranger")
	})
}

// TestAddressThatLeadsToAnotherNode is as bad as one that leads nowhere.
func TestAddressThatLeadsToAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net, advertises("c:7000")))
		c := start(t, "c", onHost(net))
		b.AddPeer("a", "a:7000")
		time.Sleep(10 * time.Second)
		a.mustFind(t, FindingAdvertiseUnreachable, "b", `"b" was dialed, and node "c" answers`)
		b.mustFind(t, FindingAdvertiseUnreachable, "a", `"b" was dialed, and node "c" answers`)
		c.mustFind(t, FindingWrongNode, "a", `"b" was dialed, and node "c" answers`)
		require.Empty(t, c.Links())
	})
}

// TestAddressThatLeadsToANamesake is told from the right one by the identity.
func TestAddressThatLeadsToANamesake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net, advertises("z:7000")))
		start(t, "b", onHost(net, other, func(c *Config) { c.Network, c.Bind = net.Host("z"), "z:7000" }))
		b.AddPeer("a", "a:7000")
		time.Sleep(10 * time.Second)
		a.mustFind(t, FindingAdvertiseUnreachable, "b", `another process called "b" answers`)
		b.mustFind(t, FindingAdvertiseUnreachable, "a", `another process called "b" answers`)
	})
}

// TestAskingStopsWhenTheLinkEnds: the first dial after a loss is at once, since
// it is evidence, although an address that swallows everything was being tried.
func TestAskingStopsWhenTheLinkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		faults := NewFaults()
		a := start(t, "a", onHost(net, func(c *Config) { c.Faults, c.DialTimeout = faults, time.Hour }))
		b := start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		time.Sleep(time.Second)
		faults.Cut("b", Out)
		a.AddPeer("b", "b:7001") // to dial it takes an hour
		synctest.Wait()
		faults.HealAll()
		time.Sleep(a.cfg.PingInterval / 2) // nothing is on its way: the end is no reset
		net.Kill("b")
		synctest.Wait()
		require.Equal(t, []string{"up 1", "down eof", "died refused-after-eof"}, a.all("b"))
	})
}

// TestLinkTheOtherWayRoundSettlesIt: what one end found out about the other is
// void once it is the other that was dialed.
func TestLinkTheOtherWayRoundSettlesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		a.AddPeer("b", "b:1")
		time.Sleep(10 * time.Second)
		require.Len(t, append(a.Findings(), b.Findings()...), 2)

		moved, err := net.Host("b").Listen("b:1")
		require.NoError(t, err)
		forwardFrom(t, moved, func() (stdnet.Conn, error) { return net.Host("b").Dial(t.Context(), "b:7000") })
		require.NoError(t, a.dial(a.peers["b"], errand{addr: "b:1"}))
		time.Sleep(time.Second)
		require.True(t, a.Links()[0].Dialed)
		require.Equal(t, []string{"up 1", "up 1"}, b.all("a"))
		require.Empty(t, append(a.Findings(), b.Findings()...))
	})
}

func TestAddressThatChangedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		a.AddPeer("b", "b:1")
		time.Sleep(10 * time.Second)
		a.mustFind(t, FindingAdvertiseUnreachable, "b", "b:1")
		a.AddPeer("b", "b:7000")
		synctest.Wait()
		require.Empty(t, append(a.Findings(), b.Findings()...))
		a.AddPeer("b", "b:2")
		time.Sleep(10 * time.Second)
		a.mustFind(t, FindingAdvertiseUnreachable, "b", "b:2")
	})
}

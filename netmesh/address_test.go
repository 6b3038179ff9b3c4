package netmesh

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/memnet"
	"github.com/stretchr/testify/require"
)

// advertises makes a node tell an address.
func advertises(addr string) func(*Config) { return func(c *Config) { c.Advertise = addr } }

// TestAddressThatRefusesTheLivingProvesNoDeath: b dials a, and a finds nobody, or somebody
// else, at the address that b tells.
func TestAddressThatRefusesTheLivingProvesNoDeath(t *testing.T) {
	for name, address := range map[string]string{
		"nobody": "b:7999", "another node": "c:7000", "a node of the same name": "z:7000",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := memnet.New()
				a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net, advertises(address)))
				c := start(t, "c", onHost(net))
				start(t, "b", at(net, "z"), other)
				b.AddPeer("a", "a:7000")
				synctest.Wait()
				require.True(t, a.trustsTheEndOf("b"), "one failure is none")
				time.Sleep(10 * time.Second)
				require.False(t, a.trustsTheEndOf("b"))
				require.NotNil(t, a.evidenceTo("b"))
				require.Empty(t, c.Links(), "asking makes no link")
				net.Kill("b")
				time.Sleep(time.Minute)
				require.Zero(t, a.count("b", "died refused-after-eof"))
			})
		})
	}
}

// TestNodeThatWasDialedBeforeItListened: that is how clusters start.
func TestNodeThatWasDialedBeforeItListened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a := start(t, "a", onHost(net))
		a.AddPeer("b", "b:7000")
		time.Sleep(time.Minute)
		require.Contains(t, a.Links()[0].LastErr, "refused")
		b := start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		time.Sleep(time.Minute)
		require.True(t, a.trustsTheEndOf("b"))
		require.True(t, b.trustsTheEndOf("a"))
		require.Empty(t, a.Counters())
		require.Empty(t, b.Counters(), "whoever only asks is no stranger")
		require.Equal(t, []string{"up 1"}, a.all("b"))
	})
}

// TestAskingStopsWhenTheLinkEnds: the first dial after a loss is at once, since
// it is evidence, although an address that swallows everything was being tried.
func TestAskingStopsWhenTheLinkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a := start(t, "a", onHost(net, func(c *Config) { c.times.dial = time.Hour }))
		b := start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		time.Sleep(time.Second)
		net.Filter("a", "hole", memnet.Drop)
		a.AddPeer("b", "hole:7001") // to dial it takes an hour
		synctest.Wait()
		time.Sleep(a.cfg.times.ping / 2) // nothing is on its way: the end is no reset
		net.Kill("b")
		synctest.Wait()
		require.Equal(t, []string{"up 1", "down eof", "died refused-after-eof"}, a.all("b"))
	})
}

func TestAddressThatChangedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		a.AddPeer("b", "b:1")
		time.Sleep(10 * time.Second)
		require.False(t, a.trustsTheEndOf("b"))
		a.AddPeer("b", "b:7000")
		synctest.Wait()
		require.True(t, a.trustsTheEndOf("b"))
		a.AddPeer("b", "b:2")
		time.Sleep(10 * time.Second)
		require.False(t, a.trustsTheEndOf("b"))
	})
}

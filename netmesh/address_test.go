package netmesh

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/memnet"
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
				require.False(t, a.trustsTheEndOf("b"))
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

// TestAddressThatWasConfiguredProvesNothing: what counts is where the process itself says
// that it listens.
func TestAddressThatWasConfiguredProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		a.AddPeer("b", "b:1")
		time.Sleep(10 * time.Second)
		require.True(t, a.trustsTheEndOf("b"))
		cut(net, "a", "b", memnet.Drop) // the process lives, and b:1 refuses
		time.Sleep(10 * time.Second)
		cut(net, "a", "b", memnet.Pass)
		time.Sleep(10 * time.Second)
		require.Zero(t, a.count("b", "died refused-after-eof"))
	})
}

package netmesh

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// onHost puts a node on a host of an in-memory network.
func onHost(n *memnet.Network, edit ...func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Network, c.Bind = n.Host(string(c.Node)), string(c.Node)+":7000"
		for _, e := range edit {
			e(c)
		}
	}
}

func boot(n uint64) func(*Config) { return func(c *Config) { c.Boot = n } }

// TestVirtualLifeAndDeath follows a pair of members through a death, a silence
// and a departure in virtual time, so that every event can be demanded at once.
func TestVirtualLifeAndDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a := start(t, "a", onHost(net))
		b := start(t, "b", onHost(net))
		a.AddPeer("b", "b:7000")
		b.AddPeer("a", "a:7000")
		synctest.Wait()
		require.Equal(t, "up 1", a.all("b")[0])

		net.Kill("b")
		synctest.Wait()
		time.Sleep(2 * time.Second) // the link was young: the redial is not at once
		synctest.Wait()
		require.Equal(t, []string{"down eof", "died refused-after-eof"}, last(a.all("b"), 2))

		b2 := start(t, "b", onHost(net, boot(2)))
		b2.AddPeer("a", "a:7000")
		time.Sleep(time.Second)
		require.Equal(t, "up 2", last(a.all("b"), 1)[0])
		require.Equal(t, 1, a.count("b", "died reincarnated"))

		cut(net, "a", "b", memnet.Drop)
		time.Sleep(a.cfg.times.idle + time.Second)
		require.Equal(t, "down timeout", last(a.all("b"), 1)[0])
		require.False(t, a.Links()[0].Up)
		require.Contains(t, a.Links()[0].LastErr, "time")
		cut(net, "a", "b", memnet.Pass)
		time.Sleep(time.Minute)
		require.Equal(t, "up 2", last(a.all("b"), 1)[0])

		b2.close(t)
		synctest.Wait()
		require.Equal(t, "down goodbye", last(a.all("b"), 1)[0])
	})
}

func last(events []string, n int) []string { return events[max(len(events)-n, 0):] }

// other gives a node another data directory under the same name.
func other(c *Config) { c.Identity[0]++ }

// A node whose data directory was lost comes back under its old name. It is
// taken in if nobody can be running on the old one, and only then.
func TestNewDataDirectoryUnderAnOldName(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(t *testing.T, net *memnet.Network, b *node)
		taken bool
	}{
		"after a death":   {func(t *testing.T, net *memnet.Network, _ *node) { net.Kill("b") }, true},
		"after a goodbye": {func(t *testing.T, _ *memnet.Network, b *node) { b.close(t) }, true},
		"while the old one is only silent": {func(_ *testing.T, net *memnet.Network, b *node) {
			cut(net, "a", "b", memnet.Drop)
			time.Sleep(time.Minute)
			b.RemovePeer("a") // or it would come back
			cut(net, "a", "b", memnet.Pass)
		}, false},
		"while the old one only said goodbye to us": {func(_ *testing.T, _ *memnet.Network, b *node) {
			b.RemovePeer("a")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := memnet.New()
				a := start(t, "a", onHost(net))
				b := start(t, "b", onHost(net))
				b.AddPeer("a", "a:7000")
				time.Sleep(time.Minute)
				c.end(t, net, b)
				time.Sleep(time.Minute)
				ups := a.count("b", "up 1")

				b2 := start(t, "b", onHost(net, other, func(c *Config) { c.Bind = "b:7001" }))
				b2.AddPeer("a", "a:7000")
				time.Sleep(time.Minute)
				if c.taken {
					require.Equal(t, ups+1, a.count("b", "up 1"))
					require.Zero(t, a.count("b", "died reincarnated"), "another directory proves nothing")
					return
				}
				require.NotZero(t, a.Counters()[ReasonDuplicateName])
			})
		})
	}
}

// What was sent before Close arrives before the goodbye: an ex-leader's last
// words are what lets the next one begin at once.
func TestLastWordsArriveBeforeTheGoodbye(t *testing.T) {
	for range 50 { // which of two ready channels a select takes is random
		synctest.Test(t, func(t *testing.T) {
			net := memnet.New()
			a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
			a.AddPeer("b", "b:7000")
			time.Sleep(time.Second)
			require.True(t, a.Send("b", "g", elector.Message{Kind: elector.LeadershipCession, Sequence: 7}))
			a.close(t)
			synctest.Wait()
			require.Equal(t, []string{"g LeadershipCession 7", "down goodbye"}, last(b.all("a"), 2))
		})
	}
}

package netmesh

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// remembers gives a node the identities that the mesh of another one has remembered.
func remembers(of *node) func(*Config) {
	of.Mesh.mu.Lock()
	defer of.Mesh.mu.Unlock()
	all := maps.Clone(of.identities)
	return func(c *Config) { c.Identities = all }
}

// A data directory that was replaced is refused until the operator decides otherwise, even after a
// restart of the member that remembers it: §6.10.
func TestAReplacedDirectoryIsRefusedUntilForgotten(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net))
		join := func(to *node, edit ...func(*Config)) *node {
			b := start(t, "b", append(edit, onHost(net))...)
			b.AddPeer("a", "a:7000")
			time.Sleep(time.Minute)
			return b
		}
		join(a).close(t)
		join(a, other).close(t)
		require.Equal(t, 2, a.count("b", "up 1"))
		first := join(a, boot(2))
		require.Equal(t, 2, len(a.identities["b"]))
		require.True(t, a.observed("b refused data-dir-outdated", "was replaced, and is put back"))
		require.True(t, first.observed("a refused data-dir-outdated"))
		first.close(t)
		a.close(t)
		a = start(t, "a", onHost(net, remembers(a)))
		first = join(a, boot(3))
		require.Empty(t, a.all("b"))
		first.close(t)
		join(a, other, boot(2)).close(t)
		require.Equal(t, 1, a.count("b", "up 2"))
		time.Sleep(time.Minute)
		require.NoError(t, a.Forget("b", time.Second))
		join(a, boot(4))
		require.Equal(t, 1, a.count("b", "up 4"))
	})
}

// Without TLS a stranger that calls first does not make the directory of a living voter outdated:
// §6.10.
func TestAStrangerMakesNoDirectoryOutdated(t *testing.T) {
	plainOnly(t)
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := calledOn(t, net)
		a.close(t)
		stranger := start(t, "b", other, at(net, "stranger"))
		stranger.AddPeer("a", "a:7000")
		b.Mesh.RemovePeer("a")
		a = start(t, "a", onHost(net, remembers(a)))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"up 1"}, a.all("b"), "the stranger")
		require.Len(t, a.identities["b"], 1)
		stranger.close(t)
		b.AddPeer("a", "a:7000")
		time.Sleep(time.Minute)
		require.Equal(t, "up 1", last(a.all("b"), 1)[0], "the voter that lives")
		require.Equal(t, b.cfg.Identity, [16]byte(a.Links()[0].Peer.Identity))
	})
}

// With TLS a process takes no part as long as one voter says that its directory is outdated.
// Without, that would be anybody's word: §6.10.
func TestOneVoterThatKnowsIsEnoughWithTLS(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*Config)
		links int
	}{
		"TLS": {encrypted, 0}, "without TLS": {func(*Config) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			plainOnly(t)
			ids := []uuid.UUID{testConfig("c").Identity, uuid.New()}
			knows := func(c *Config) { c.Identities = map[elector.NodeID][]uuid.UUID{"c": ids} }
			a, b, late := start(t, "a", c.edit, knows), start(t, "b", c.edit), start(t, "c", c.edit)
			late.knows(b)
			b.sees(t, "c", "up 1")
			late.knows(a)
			late.observes(t, "a refused data-dir-outdated")
			until(t, func() bool { return late.up() == c.links })
			time.Sleep(3 * late.cfg.times.redialMax)
			require.Equal(t, c.links, b.up())
			require.Equal(t, c.links, late.up())
			require.Zero(t, b.Counters()[ReasonOutdated], "it is no word about b")
		})
	}
}

// A node whose data directory was lost comes back under its old name. It is accepted only if nobody
// can be running on the old one.
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
			virtual(t, func(t *testing.T, net *memnet.Network) {
				a, b := calledOn(t, net)
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

// What was sent before Close arrives before the goodbye: the cession of a leader lets the next one
// begin at once.
func TestLastWordsArriveBeforeTheGoodbye(t *testing.T) {
	for range 50 { // which of two ready channels a select takes is random
		virtual(t, func(t *testing.T, net *memnet.Network) {
			a, b := pairOn(t, net)
			time.Sleep(time.Second)
			require.True(t, a.Send("b", "g", elector.Message{Kind: elector.LeadershipCession, Sequence: 7}))
			a.close(t)
			synctest.Wait()
			require.Equal(t, []string{"g LeadershipCession 7", "down goodbye"}, last(b.all("a"), 2))
		})
	}
}

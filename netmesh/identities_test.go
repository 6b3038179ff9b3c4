package netmesh

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// remembers gives a node what its mesh has remembered of names.
func remembers(of *node) func(*Config) {
	of.Mesh.mu.Lock()
	defer of.Mesh.mu.Unlock()
	all := map[elector.NodeID][]uuid.UUID{}
	for name, ids := range of.identities {
		all[name] = ids
	}
	return func(c *Config) { c.Identities = all }
}

// A data directory that was replaced is refused, also after a restart of the member that
// remembers, until the operator decides otherwise: §6.10.
func TestAReplacedDirectoryIsRefusedUntilForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
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

// Without TLS a stranger that comes first makes no living voter's directory outdated: §6.10.
func TestAStrangerMakesNoDirectoryOutdated(t *testing.T) {
	plainOnly(t)
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a := start(t, "a", onHost(net))
		b := start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		time.Sleep(time.Minute)
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
			require.Eventually(t, func() bool { return late.up() == c.links }, patience, glance)
			time.Sleep(3 * late.cfg.times.redialMax)
			require.Equal(t, c.links, b.up())
			require.Equal(t, c.links, late.up())
			require.Zero(t, b.Counters()[ReasonOutdated], "it is no word about b")
		})
	}
}

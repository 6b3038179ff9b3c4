package netmesh

import (
	"net"
	"testing"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/stretchr/testify/require"
)

// TestRefusedHandshakesAreObservedByBothEnds: each names both ends' values.
func TestRefusedHandshakesAreObservedByBothEnds(t *testing.T) {
	plainOnly(t)
	own := []string{`two nodes are called "a"`}
	elsewhere := []string{`"c" was dialed`, `"a" answers`}
	twice := []string{`"b" has identity`, "connected at 127.0.0.1:"}
	for name, c := range map[string]struct {
		edit  func(*Config)  // of the node that dials a, which has a link to b
		dials elector.NodeID // a, by the name of
		kind  Reason
		about elector.NodeID // as a sees it
		words []string
	}{
		"cluster": {func(c *Config) { c.Cluster = "other" }, "a", ReasonForeignCluster, "z",
			[]string{`"other"`, `"test"`}},
		"name of a peer": {func(c *Config) { c.Node = "b" }, "a", ReasonDuplicateName, "b", twice},
		"its own name":   {func(c *Config) { c.Node = "a" }, "c", ReasonDuplicateName, "a", own},
		"address":        {func(*Config) {}, "c", ReasonWrongNode, "z", elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := start(t, "a"), start(t, "b")
			a.knows(b)
			a.sees(t, "b", "up 1")
			z := start(t, "z", c.edit, func(c *Config) { c.Identity[3]++ })
			z.AddPeer(c.dials, a.Addr().String())
			a.observes(t, append(c.words, string(c.about)+" refused "+c.kind.String())...)
			z.observes(t, append(c.words, string(c.dials)+" refused "+c.kind.String())...)
			a.counts(t, c.kind)
			z.counts(t, c.kind)
			z.fails(t, c.words[0])
		})
	}
}

// TestVersionsWithNothingInCommon: a peer that is too new is told which versions this node speaks.
func TestVersionsWithNothingInCommon(t *testing.T) {
	a := start(t, "a")
	s, h := intrude(t, a), helloFrom(a)
	h.MinVersion, h.MaxVersion = 9, 12
	require.NoError(t, s.send(frameHello, h))
	require.ErrorContains(t, s.expect(frameWelcome, &hello{}),
		`node "x" speaks versions 9 to 12, node "a" 2 to 6`)
	a.counts(t, ReasonVersion)
	a.observes(t, "x refused "+ReasonVersion.String(), "versions 9 to 12", "2 to 6")
}

// TestAcceptorIsToldWhyItsWelcomeIsRefused: otherwise the dialer would look like a health check.
func TestAcceptorIsToldWhyItsWelcomeIsRefused(t *testing.T) {
	plainOnly(t)
	a := start(t, "a")
	acceptor, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = acceptor.Close() }()
	a.AddPeer("x", acceptor.Addr().String())
	conn, err := acceptor.Accept()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	g, w := newHandshake(conn, patience), helloFrom(a)
	if a.cfg.TLS != nil {
		require.NoError(t, g.secure(asX(), ""))
	}
	require.NoError(t, g.expect(frameHello, &hello{}))
	w.Cluster = "elsewhere"
	require.NoError(t, g.send(frameWelcome, w))
	require.ErrorContains(t, g.expect(frameJoin, &ping{}),
		`refused by the peer (foreign-cluster): node "x" belongs to cluster "elsewhere"`)
	a.counts(t, ReasonForeignCluster)
	a.observes(t, "x refused "+ReasonForeignCluster.String(), `"elsewhere"`, `"test"`)
}

func TestRefusedWelcomeIsObservedByTheAcceptor(t *testing.T) {
	a := start(t, "a")
	s := intrude(t, a)
	require.NoError(t, s.send(frameHello, helloFrom(a)))
	require.NoError(t, s.expect(frameWelcome, &hello{}))
	s.fail(frameRefuse, refuse(ReasonDuplicateName, "two nodes are called %q", "a"))
	a.counts(t, ReasonDuplicateName)
	a.observes(t, "x refused "+ReasonDuplicateName.String(), "refused by the peer",
		`two nodes are called "a"`)
}

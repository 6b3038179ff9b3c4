package netmesh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// finding returns what n finds of that kind about a peer.
func (n *node) finding(kind FindingKind, peer elector.NodeID) (f Finding, ok bool) {
	for _, f := range n.Findings() {
		if f.Kind == kind && f.Peer == peer {
			return f, true
		}
	}
	return Finding{}, false
}

// comesToFind waits until n finds that about a peer.
func (n *node) comesToFind(t testing.TB, kind FindingKind, peer elector.NodeID) {
	t.Helper()
	require.Eventually(t, func() bool { _, ok := n.finding(kind, peer); return ok }, patience, glance,
		"node %s, waiting for %s of %s", n.cfg.Node, kind, peer)
}

// mustFind returns the only thing that n finds, whose detail has all the words.
func (n *node) mustFind(t testing.TB, kind FindingKind, peer elector.NodeID, words ...string) Finding {
	t.Helper()
	all := n.Findings()
	require.Len(t, all, 1)
	require.Equal(t, kind, all[0].Kind)
	require.Equal(t, peer, all[0].Peer)
	require.NotEmpty(t, all[0].Advice)
	for _, word := range words {
		require.Contains(t, all[0].Detail, word)
	}
	return all[0]
}

func TestEveryKindOfFindingHasANameAndAdvice(t *testing.T) {
	for k := FindingVotersDiffer; k < findingEnd; k++ {
		text, err := json.Marshal(Finding{Kind: k})
		require.NoError(t, err)
		require.Contains(t, string(text), `"kind":"`+k.String()+`"`)
		var back Finding
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, k, back.Kind)
		require.NotEmpty(t, advice[k], k)
	}
	require.Equal(t, "finding(0) finding(99)", FindingKind(0).String()+" "+FindingKind(99).String())
	_, err := FindingKind(0).MarshalText()
	require.Error(t, err)
	var k FindingKind
	require.ErrorContains(t, k.UnmarshalText([]byte("none")), `"none"`)
	require.ErrorContains(t, k.UnmarshalText([]byte("tachyons")), `"tachyons"`)
}

func TestFindingsComeAndGo(t *testing.T) {
	var fs findings
	began := time.Now()
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	require.True(t, fs.raise(Finding{Kind: FindingClockRate, Peer: "b", Detail: "1"}, at(0), false))
	require.False(t, fs.raise(Finding{Kind: FindingClockRate, Peer: "b", Detail: "2"}, at(5), false), "no news")
	require.True(t, fs.raise(Finding{Kind: FindingNameTwice, Peer: "b"}, at(5), true))
	require.True(t, fs.raise(Finding{Kind: FindingVotersDiffer, Peer: "a"}, at(9), false))
	require.Equal(t, []Finding{
		{Kind: FindingVotersDiffer, Peer: "a", Since: at(9)},
		{Kind: FindingClockRate, Peer: "b", Detail: "2", Since: at(0)},
		{Kind: FindingNameTwice, Peer: "b", Since: at(5)},
	}, fs.list(at(65)), "sorted; since it began; the newest detail")
	require.Len(t, fs.list(at(66)), 2, "a refusal that does not come again expires, what a link shows does not")
	require.True(t, fs.clear(FindingVotersDiffer, "a"))
	require.False(t, fs.clear(FindingVotersDiffer, "a"))

	require.True(t, fs.raise(Finding{Kind: FindingNameTwice, Peer: "b"}, at(70), true))
	fs.forget("b", false, true)
	require.Equal(t, FindingClockRate, fs.list(at(70))[0].Kind)
	fs.forget("b", true, false)
	require.Empty(t, fs.list(at(70)))
}

func TestReportsOfOthersAreMadePrintable(t *testing.T) {
	var m Mesh
	m.Report(findingEnd, "b", "no such kind")
	m.Report(0, "b", "nor this")
	require.Empty(t, m.Findings())
	m.Report(FindingWrongCluster, "b\x1b"+nodeID(strings.Repeat("n", 300)), "line\nbreak"+strings.Repeat("d", 1<<20))
	f := m.Findings()[0]
	require.Equal(t, advice[FindingWrongCluster], f.Advice)
	require.True(t, strings.HasPrefix(string(f.Peer), "b n") && len(f.Peer) <= MaxNameLength, f.Peer)
	require.True(t, strings.HasPrefix(f.Detail, "line break") && len(f.Detail) <= maxText)
}

// TestStrangersCannotHideFindings: whoever connects under ever new names pushes
// out nobody but the like of him.
func TestStrangersCannotHideFindings(t *testing.T) {
	var fs findings
	now := time.Now()
	require.True(t, fs.raise(Finding{Kind: FindingClockRate, Peer: "b"}, now, false))
	for i := range 10 * maxRefused {
		peer := elector.NodeID(fmt.Sprint("x", i))
		require.True(t, fs.raise(Finding{Kind: FindingWrongCluster, Peer: peer}, now.Add(time.Duration(i)), true))
	}
	all := fs.list(now)
	require.Len(t, all, 1+maxRefused)
	require.Equal(t, FindingClockRate, all[0].Kind)
	require.Contains(t, all, Finding{Kind: FindingWrongCluster, Peer: "x639", Since: now.Add(639)}, "the newest are kept")
	for i := range 2 * maxFindings {
		fs.raise(Finding{Kind: FindingClockRate, Peer: elector.NodeID(fmt.Sprint("y", i))}, now, false)
	}
	require.Len(t, fs.list(now), maxFindings)
}

func TestFindingsAreLoggedOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	m := &Mesh{log: logger{Logger: hclog.New(&hclog.LoggerOptions{Output: &out})}}
	for range 5 {
		m.finds("b", FindingVotersDiffer, "so")
		m.finds("b", FindingVotersDiffer, "")
	}
	m.finds("c", FindingVotersDiffer, "so")
	require.Equal(t, 2, strings.Count(out.String(), "voters-differ"), out.String())
	require.Contains(t, out.String(), "advice=")
}

// TestRefusedHandshakesAreFindingsOfBothEnds: each names both ends' values.
func TestRefusedHandshakesAreFindingsOfBothEnds(t *testing.T) {
	own := []string{`two nodes are called "a"`}
	elsewhere := []string{`"c" was dialed`, `"a" answers`}
	twice := []string{`"b" has identity`, "connected at 127.0.0.1:"}
	for name, c := range map[string]struct {
		edit  func(*Config)  // of the node that dials a, which has a link to b
		dials elector.NodeID // a, by the name of
		kind  FindingKind
		about elector.NodeID // as a sees it
		words []string
	}{
		"cluster":        {func(c *Config) { c.Cluster = "other" }, "a", FindingWrongCluster, "z", []string{`"other"`, `"test"`}},
		"name of a peer": {func(c *Config) { c.Node = "b" }, "a", FindingNameTwice, "b", twice},
		"its own name":   {func(c *Config) { c.Node = "a" }, "c", FindingNameTwice, "a", own},
		"address":        {func(*Config) {}, "c", FindingWrongNode, "z", elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := start(t, "a"), start(t, "b")
			a.knows(b)
			a.sees(t, "b", "up 1")
			z := start(t, "z", c.edit, func(c *Config) { c.Identity[3]++ })
			z.AddPeer(c.dials, a.Addr().String())
			a.comesToFind(t, c.kind, c.about)
			a.mustFind(t, c.kind, c.about, c.words...)
			z.comesToFind(t, c.kind, c.dials)
			z.mustFind(t, c.kind, c.dials, c.words...)
		})
	}
}

// TestVersionsWithNothingInCommon: who is too new is told what this node speaks.
func TestVersionsWithNothingInCommon(t *testing.T) {
	a := start(t, "a")
	s, h := intrude(t, a), helloFrom(a)
	h.MinVersion, h.MaxVersion = 9, 12
	require.NoError(t, s.send(frameHello, h))
	require.ErrorContains(t, s.expect(frameWelcome, &hello{}), `node "x" speaks versions 9 to 12, node "a" 1 to 3`)
	a.counts(t, ReasonVersion)
	a.mustFind(t, FindingVersion, "x", "versions 9 to 12", "1 to 3")
}

// TestAcceptorIsToldWhyItsWelcomeIsRefused: without a word the dialer would look
// like a health check.
func TestAcceptorIsToldWhyItsWelcomeIsRefused(t *testing.T) {
	a := start(t, "a")
	acceptor, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = acceptor.Close() }()
	a.AddPeer("x", acceptor.Addr().String())
	conn, err := acceptor.Accept()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	g, w := newGreeting(conn, patience), helloFrom(a)
	require.NoError(t, g.expect(frameHello, &hello{}))
	w.Cluster = "elsewhere"
	require.NoError(t, g.send(frameWelcome, w))
	require.ErrorContains(t, g.expect(frameJoin, &ping{}), `refused by the peer (foreign-cluster): node "x" belongs to cluster "elsewhere"`)
	a.counts(t, ReasonForeignCluster)
	a.mustFind(t, FindingWrongCluster, "x", `"elsewhere"`, `"test"`)
}

func TestRefusedWelcomeIsAFindingOfTheAcceptor(t *testing.T) {
	a := start(t, "a")
	s := intrude(t, a)
	require.NoError(t, s.send(frameHello, helloFrom(a)))
	require.NoError(t, s.expect(frameWelcome, &hello{}))
	s.refuse(refuse(ReasonDuplicateName, "two nodes are called %q", "a"))
	a.counts(t, ReasonDuplicateName)
	a.mustFind(t, FindingNameTwice, "x", "refused by the peer", `two nodes are called "a"`)
}

package netmesh

import (
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// member is a hand-made process "x" that has a link to a node under test, and can be
// dialed by it.
type member struct {
	*stranger // its end of the link
	a         *node
	network   Network
	listener  net.Listener
	hello     *hello
	dying     atomic.Bool // the next to dial meets a listener that goes away
	secret    certificate // of the evidence connection
}

// joins makes a member of the newest version, which has told its facts.
func joins(t *testing.T, a *node, network Network, bind string) *member {
	t.Helper()
	l, err := network.Listen(bind)
	require.NoError(t, err)
	m := &member{
		a: a, network: network, listener: l, hello: helloFrom(a), secret: newCertificate(),
	}
	m.hello.MaxVersion, m.hello.Address, m.hello.Process = maxVersion, l.Addr().String(), 7
	answered := make(chan struct{})
	w := *m.hello
	w.MinVersion = w.MaxVersion
	go func() { defer close(answered); m.answer(&w) }()
	t.Cleanup(func() { _ = l.Close(); <-answered })
	m.stranger = m.dial(t)
	require.NoError(t, m.send(frameHello, m.hello))
	var theirs hello
	require.NoError(t, m.expect(frameWelcome, &theirs))
	require.NoError(t, m.send(frameJoin, &ping{}))
	m.hello.Evidence = theirs.Evidence
	require.NoError(t, m.send(frameFacts, &Facts{}))
	a.sees(t, "x", "up 1")
	return m
}

// inKernel is a member on loopback.
func inKernel(t *testing.T, a *node) *member { return joins(t, a, tcpNetwork{}, "127.0.0.1:0") }

// dial connects to the node under test.
func (m *member) dial(t *testing.T) *stranger {
	conn, err := m.network.Dial(t.Context(), m.a.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { reset(conn) })
	return &stranger{shake(t, conn, m.a, patience), t}
}

// answer says to everybody who dials that it is x, until the listener is closed.
func (m *member) answer(w *hello) {
	for {
		conn, err := m.listener.Accept()
		if err != nil {
			return
		}
		if m.dying.CompareAndSwap(true, false) {
			_ = m.listener.Close()
			reset(conn)
			return
		}
		g := newHandshake(conn, patience)
		if m.a.cfg.TLS != nil && g.secure(asX(), "") != nil {
			continue
		}
		var theirs hello
		if err := g.expect(frameHello, &theirs); err == nil {
			answer := *w
			if theirs.Probe {
				answer.Process = probed(w.Process, maxVersion)
			}
			g.closeWith(frameWelcome, &answer)
		}
		reset(conn)
	}
}

// evidence makes the evidence connection of the member's link.
func (m *member) evidence() *stranger {
	m.t.Helper()
	s := m.dial(m.t.(*testing.T))
	require.NoError(m.t, m.present(s))
	until(m.t, func() bool { return m.a.trustsTheEndOf("x") && m.a.stands("x") })
	return s
}

// present shakes hands as the evidence connection of the member's link.
func (m *member) present(s *stranger) error {
	h := *m.hello
	h.Local, h.Remote = endsOf(s.conn)
	h.Commitment = m.secret.commitment()
	if err := s.send(frameHello, &h); err != nil {
		return err
	}
	return s.expect(frameWelcome, &hello{})
}

// shows writes to the connection as the parent of its process can: below TLS.
func (s *stranger) shows(certificate []byte) {
	_, err := s.raw.Write(certificate)
	require.NoError(s.t, err)
}

// TestResetThatAWriterMeetsFirstIsNoProof: only the first call after a reset gets its error. If
// that is the writer's, the reader sees an end of stream. Here the port of a living process also
// refuses, as behind a firewall that rejects with a reset: §6.7.
func TestResetThatAWriterMeetsFirstIsNoProof(t *testing.T) {
	t.Run("kernel", func(t *testing.T) {
		a := startWith(t, "a", &recorder{slow: "x", release: make(chan struct{})})
		resetBeforeWrite(t, a, inKernel(t, a))
	})
	t.Run("memory", func(t *testing.T) {
		virtual(t, func(t *testing.T, network *memnet.Network) {
			a := startWith(t, "a", &recorder{slow: "x", release: make(chan struct{})}, onHost(network))
			resetBeforeWrite(t, a, joins(t, a, network.Host("x"), "x:7000"))
		})
	})
}

// resetBeforeWrite blocks the reader of a's link by a message, until all connections have been
// reset and a ping has met the reset.
func resetBeforeWrite(t *testing.T, a *node, m *member) {
	e := m.evidence()
	m.says(1)
	until(t, a.held.Load)
	_ = m.listener.Close()
	reset(m.conn)
	reset(e.conn)
	until(t, func() bool { return a.broken("x") })
	close(a.release)
	until(t, func() bool { return a.up() == 0 })
	a.AddPeer("x", m.hello.Address)
	a.fails(t, "refused")
	require.Equal(t, elector.EvidenceReset,
		ofPeer(a, "x", func(p *peer) elector.Evidence { return p.evidence.seen }))
	require.Equal(t, []string{"up 1", "g HeartbeatAck 1", "down reset"}, a.all("x"))
}

// TestDeathIsProvenWhileTheLinkIsRead: the port of the dead process is dialed at once, but what
// the process said before is handed over first.
func TestDeathIsProvenWhileTheLinkIsRead(t *testing.T) {
	a := startWith(t, "a", &recorder{slow: "x", release: make(chan struct{})})
	m := inKernel(t, a)
	e := m.evidence()
	m.says(1)
	until(t, a.held.Load)
	_ = m.listener.Close()
	_ = closeWrite(m.conn)
	_ = e.conn.Close()
	refused := func() bool {
		return ofPeer(a, "x", func(p *peer) bool { return p.evidence.proof != 0 })
	}
	require.Eventually(t, refused, patience, glance, "the handler still holds the reader up")
	require.Equal(t, []string{"up 1"}, a.all("x"))
	close(a.release)
	a.sees(t, "x", "died refused-after-eof")
	require.Equal(t, []string{"up 1", "g HeartbeatAck 1", "down eof", "died refused-after-eof"},
		a.all("x"))
}

// broken reports whether the writer of a link has met an error.
func (n *node) broken(peer nodeID) bool {
	l := n.linkTo(peer)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// TestEvidenceEnds plays the ways in which an evidence connection or a link ends.
func TestEvidenceEnds(t *testing.T) { plainAndTLS(t, evidenceEnds) }

func evidenceEnds(t *testing.T, encrypt func(*Config)) {
	died := "died refused-after-eof"
	for name, c := range map[string]struct {
		act  func(m *member, e *stranger)
		want []string
	}{
		"both by a FIN, refused": {func(m *member, e *stranger) {
			_ = m.listener.Close()
			_ = closeWrite(m.conn)
			_ = e.conn.Close()
		}, []string{"up 1", "down eof", died}},
		"the link by a reset, refused": {func(m *member, e *stranger) {
			_ = m.listener.Close()
			reset(m.conn)
			_ = e.conn.Close()
		}, []string{"up 1", "down reset", died}},
		"the evidence alone, refused": {func(m *member, e *stranger) {
			_ = m.listener.Close()
			_ = e.conn.Close()
		}, []string{"up 1", "down eof", died}},
		"the link first, long before": {func(m *member, e *stranger) {
			_ = m.listener.Close()
			reset(m.conn)
			m.a.sees(m.t, "x", "down reset")
			time.Sleep(m.a.cfg.times.redialMax)
			_ = e.conn.Close()
		}, []string{"up 1", "down reset", died}},
		"the evidence by a reset": {func(m *member, e *stranger) {
			_ = m.listener.Close()
			_ = closeWrite(m.conn)
			reset(e.conn)
		}, []string{"up 1", "down eof"}},
		"both by a FIN, answered": {func(m *member, e *stranger) {
			_ = closeWrite(m.conn)
			m.a.sees(m.t, "x", "down eof") // or the answer replaces the link before
			_ = e.conn.Close()
		}, []string{"up 1", "down eof", "up 1"}},
		"the certificate, answered": {func(m *member, e *stranger) {
			e.shows(m.secret[:])
			_ = closeWrite(m.conn)
		}, []string{"up 1", "down eof", "died certified"}},
		"the certificate alone": {func(m *member, e *stranger) {
			e.shows(m.secret[:])
		}, []string{"up 1", "down eof", "died certified"}},
		"the certificate, after the link": {func(m *member, e *stranger) {
			reset(m.conn)
			m.a.sees(m.t, "x", "down reset")
			e.shows(m.secret[:])
		}, []string{"up 1", "down reset", "died certified"}},
		"another certificate": {func(m *member, e *stranger) {
			forged := newCertificate()
			e.shows(forged[:])
		}, []string{"up 1", "down local"}},
		"a part of the certificate": {func(m *member, e *stranger) {
			e.shows(m.secret[:31])
			_ = e.conn.Close()
		}, []string{"up 1", "down local"}},
		"the commitment": {func(m *member, e *stranger) {
			e.shows(m.secret.commitment())
		}, []string{"up 1", "down local"}},
		"the link alone": {func(m *member, _ *stranger) {
			_ = m.listener.Close()
			_ = closeWrite(m.conn)
		}, []string{"up 1", "down eof"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, "a", encrypt)
			m := inKernel(t, a)
			e := m.evidence()
			c.act(m, e)
			until(t, func() bool { return len(a.all("x")) >= len(c.want) })
			a.AddPeer("x", m.hello.Address)
			time.Sleep(3 * a.cfg.times.redialMax) // for what is not to come
			require.Equal(t, c.want, a.all("x")[:len(c.want)])
			require.Equal(t, slices.Contains(c.want, died), a.count("x", died) == 1)
		})
	}
}

// TestACertificateEndsALinkThatStands at once, though the kernel may close the dead process's end
// much later: §6.5. On a busy machine the end may be as late as that of a goodbye, but not each
// time.
func TestACertificateEndsALinkThatStands(t *testing.T) {
	for range 5 {
		a := start(t, "a")
		m := inKernel(t, a)
		e := m.evidence()
		shown := time.Now()
		e.shows(m.secret[:])
		a.sees(t, "x", "died certified")
		if time.Since(shown) < goodbyeTime {
			return
		}
	}
	t.Fatal("five times the link stood as long as for a goodbye")
}

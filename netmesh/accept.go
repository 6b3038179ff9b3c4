package netmesh

import (
	"errors"
	"net"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	maxPending = 64                     // handshakes at a time that others began
	acceptRest = 100 * time.Millisecond // after a failure such as too many open files
)

// accept takes connections until the listener is closed.
func (m *Mesh) accept() {
	for {
		conn, err := m.listener.Accept()
		switch {
		case err == nil:
			m.receive(conn)
		case errors.Is(err, net.ErrClosed):
			m.dropPending()
			return
		default:
			m.log.warn("accept", "", "cannot accept connections", "cause", err)
			time.Sleep(acceptRest)
		}
	}
}

// receive starts the handshake of an accepted connection, unless too many
// others are in theirs.
func (m *Mesh) receive(conn net.Conn) {
	m.mu.Lock()
	crowded := len(m.pending) >= maxPending
	if !crowded {
		m.pending[conn] = struct{}{}
	}
	m.mu.Unlock()
	if crowded {
		m.reject(conn, refuse(ReasonCrowded, "%d handshakes at a time", maxPending))
		reset(conn)
		return
	}
	m.others.Go(func() { m.serve(conn) })
}

func (m *Mesh) dropPending() {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for conn := range m.pending {
		reset(conn)
	}
}

// serve does the acceptor's part of the handshake, and counts what fails.
func (m *Mesh) serve(conn net.Conn) {
	l, err := m.welcome(newGreeting(conn, m.cfg.HandshakeTimeout))
	m.mu.Lock()
	delete(m.pending, conn)
	m.mu.Unlock()
	switch {
	case errors.Is(err, errNoLink):
	case err != nil:
		m.reject(conn, err)
	default:
		go l.run()
	}
}

// welcome answers a Hello and waits for the Join. The connection is closed if
// an error is returned.
func (m *Mesh) welcome(g *greeting) (*link, error) {
	var h hello
	if err := g.expect(frameHello, &h); err != nil {
		m.dismiss(g, err)
		return nil, err
	}
	if refused := m.consider(&h); refused != nil {
		m.refused(elector.NodeID(h.Node), g.conn.RemoteAddr().String(), refused)
		g.refuse(refused)
		return nil, refused
	}
	if m.cutOff(elector.NodeID(h.Node)) {
		m.vanish()
		reset(g.conn)
		return nil, refuse(ReasonNone, "cut off by the fault layer")
	}
	if h.Probe {
		return nil, m.answerProbe(g, &h)
	}
	if len(h.Evidence) > 0 {
		return nil, m.acceptEvidence(g, &h)
	}
	if refused := m.await(); refused != nil {
		g.refuse(refused)
		return nil, refused
	}
	defer m.links.Done()
	l, err := m.join(g, &h)
	if err != nil {
		m.refused(elector.NodeID(h.Node), g.conn.RemoteAddr().String(), err)
		g.leave(err)
		return nil, err
	}
	return l, nil
}

// await makes Close wait for a handshake from its Welcome on: the dialer goes on with the
// new link and gives up an older one, so the goodbye must be said on the new one. The
// caller must call links.Done.
func (m *Mesh) await() *refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return refuse(ReasonClosing, "node %s is leaving", m.cfg.Node)
	}
	m.links.Add(1)
	return nil
}

// dismiss closes a connection without a Hello, and says why to who broke the rules.
func (m *Mesh) dismiss(g *greeting, err error) {
	var broke *refusal
	if errors.As(err, &broke) && !broke.byPeer {
		g.refuse(broke)
		return
	}
	_ = g.conn.Close() // never was a link: how it ends proves nothing
}

// consider reports why a Hello is to be refused.
func (m *Mesh) consider(h *hello) *refusal {
	if refused := m.check(h); refused != nil {
		return refused
	}
	if h.To != string(m.cfg.Node) {
		return refuse(ReasonWrongNode, "node %q was dialed, and node %q answers", h.To, m.cfg.Node)
	}
	m.mu.RLock()
	closing := m.closing
	m.mu.RUnlock()
	switch {
	case closing:
		return refuse(ReasonClosing, "node %s is leaving", m.cfg.Node)
	case h.Probe, len(h.Evidence) > 0:
		return nil
	}
	c := h.connection(elector.NodeID(h.Node))
	return m.weigh(&c)
}

// join sends the Welcome, awaits the Join and puts the link in its place.
func (m *Mesh) join(g *greeting, h *hello) (*link, error) {
	w := m.welcomeTo(h)
	w.Evidence = newKey()
	if err := g.send(frameWelcome, w); err != nil {
		return nil, err
	}
	if err := g.expect(frameJoin, &ping{}); err != nil {
		return nil, err
	}
	l := m.newLink(g, h.info(g.conn), h.connection(elector.NodeID(h.Node)))
	l.key = w.Evidence
	if refused := m.install(l); refused != nil {
		return nil, refused
	}
	return l, nil
}

// reject counts and logs a connection that did not become a link.
func (m *Mesh) reject(conn net.Conn, err error) {
	reason := reasonOf(err)
	m.stats.count(reason)
	remote := conn.RemoteAddr().String()
	host, _, splitErr := net.SplitHostPort(remote)
	if splitErr != nil {
		host = remote
	}
	if reason == ReasonAlreadyConnected || reason == ReasonNone {
		m.log.Debug("connection refused", "remote", remote, "reason", reason, "cause", err)
		return
	}
	m.log.warnRefused(reason, host, "connection refused", "remote", remote, "cause", err)
}

package netmesh

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// dial makes a connection to p and, if the handshake succeeds, starts the link.
func (m *Mesh) dial(p *peer, e errand) error {
	conn, err := m.connect(p.ctx, p.node, e.addr)
	if err != nil {
		return fmt.Errorf("dial %s at %s: %w", p.node, e.addr, err)
	}
	l, err := m.greet(p, conn)
	if err != nil {
		return fmt.Errorf("handshake with %s at %s: %w", p.node, e.addr, err)
	}
	go l.run()
	return nil
}

func (m *Mesh) connect(ctx context.Context, node elector.NodeID, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.DialTimeout)
	defer cancel()
	if m.cutOff(node) {
		<-ctx.Done() // a cut network gives no answer
		return nil, ctx.Err()
	}
	return m.cfg.Network.Dial(ctx, addr)
}

// greet does the dialer's part of the handshake. The connection is closed if an
// error is returned.
func (m *Mesh) greet(p *peer, conn net.Conn) (*link, error) {
	release := context.AfterFunc(p.ctx, func() { reset(conn) })
	g := newGreeting(conn, m.cfg.HandshakeTimeout)
	l, err := m.introduce(g, p.node)
	release() // a link ends with a goodbye, whatever becomes of the dialer
	if err == nil {
		err = m.enter(g, l)
	}
	if err != nil {
		_ = conn.Close() // never was a link: how it ends proves nothing
		return nil, err
	}
	return l, nil
}

// introduce sends the Hello and awaits the Welcome.
func (m *Mesh) introduce(g *greeting, node elector.NodeID) (*link, error) {
	dial := m.dials.Add(1)
	if err := g.send(frameHello, m.hello(node, dial)); err != nil {
		return nil, err
	}
	var w hello
	if err := g.expect(frameWelcome, &w); err != nil {
		return nil, err
	}
	if refused := m.checkWelcome(&w, node); refused != nil {
		g.refuse(refused)
		return nil, refused
	}
	w.Dial = dial
	l := m.newLink(g, w.info(g.conn), w.connection(m.cfg.Node))
	l.key = w.Evidence
	return l, nil
}

// enter puts a link that was dialed in its place.
func (m *Mesh) enter(g *greeting, l *link) error {
	if refused := m.install(l); refused != nil {
		g.refuse(refused)
		return refused
	}
	return nil
}

// checkWelcome reports by which rule who answered is not the node that was dialed.
func (m *Mesh) checkWelcome(w *hello, node elector.NodeID) *refusal {
	if refused := m.check(w); refused != nil {
		return refused
	}
	if w.Node != string(node) {
		return refuse(ReasonWrongNode, "node %q was dialed, and node %q answers", node, w.Node)
	}
	return nil
}

// connection returns what decides between the connection of this handshake and
// another one.
func (h *hello) connection(dialer elector.NodeID) connection {
	return connection{
		node: elector.NodeID(h.Node), identity: [16]byte(h.Identity), boot: h.Boot, process: h.Process,
		dialer: dialer, dial: h.Dial,
	}
}

// cutOff reports whether the fault layer keeps node and this one from shaking
// hands: that takes both directions.
func (m *Mesh) cutOff(node elector.NodeID) bool {
	return m.cfg.Faults != nil && m.cfg.Faults.cut(node, Both)
}

// vanish stands for the network that a connection is cut off by: no answer until
// the handshake has timed out.
func (m *Mesh) vanish() {
	timer := time.NewTimer(m.cfg.HandshakeTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.ctx.Done():
	}
}

package netmesh

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/google/uuid"
)

// evidenceVersion is the first version of the protocol that has evidence connections.
const evidenceVersion = 3

// evidence is the second connection to the process behind a link, whose end shows that
// this process is gone. After its handshake nobody writes on it. So no writer takes the
// error that the reader needs, and no data is unread when the process dies: its kernel
// ends the connection by a FIN. A living process ends it by a reset, always. The link
// cannot show that: of a reset on it the reader may see an end of stream, and data that is
// unread turns the FIN of a death into a reset.
type evidence struct {
	l    *link
	conn net.Conn
	in   io.Reader     // from conn, by the buffer of its handshake
	done chan struct{} // closed by drop
	over chan struct{} // closed when the peer has ended it

	// Guarded by Mesh.mu.
	seen     elector.Evidence // how the peer ended it; none while it stands
	provable bool             // as it was when the link ended
}

// newKey returns what the dialer of a link shows to have its evidence connection
// accepted: strangers do not know it.
func newKey() []byte {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	return key
}

// wantEvidence starts to make the evidence connection of a link that this side dialed,
// once that is known to lead straight to the peer. Called by the link's reader.
func (l *link) wantEvidence() {
	possible := l.dialed && l.direct.Load() && l.info.Version >= evidenceVersion && !l.m.cfg.NoDeathProof &&
		resettable(l.conn)
	if possible && !l.wanted {
		l.wanted = true
		l.m.others.Go(l.keepEvidence)
	}
}

// keepEvidence makes the evidence connection again and again as long as the link stands,
// and watches it until it ends.
func (l *link) keepEvidence() {
	pause := l.p.pauses()
	for fails := 0; l.current() && !l.ending(); {
		e, err := l.dialEvidence()
		if err == nil {
			fails = 0
			began := time.Now()
			l.m.watch(e)
			if time.Since(began) >= pause.max {
				pause.reset()
			}
		} else if fails++; fails == reachTries {
			l.m.log.Info("no evidence connection: the death of this member's process would not be proven",
				"peer", l.node, "addr", l.info.Remote, "cause", err)
		}
		timer := time.NewTimer(pause.next())
		select {
		case <-timer.C:
		case <-l.stop:
			timer.Stop()
		}
	}
}

// dialEvidence makes the evidence connection to where the link leads.
func (l *link) dialEvidence() (*evidence, error) {
	conn, err := l.m.connect(l.p.ctx, l.node, l.info.Remote)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(l.p.ctx, func() { reset(conn) })()
	if err := l.m.cfg.HoldEvidence(conn); err != nil {
		reset(conn)
		return nil, fmt.Errorf("hold it: %w", err)
	}
	e, err := l.introduceEvidence(newGreeting(conn, l.m.cfg.HandshakeTimeout))
	if err != nil {
		reset(conn) // no FIN: the acceptor may take it for the evidence connection by now
		return nil, err
	}
	return e, nil
}

func (l *link) introduceEvidence(g *greeting) (*evidence, error) {
	h := l.m.hello(l.node, l.dial)
	h.Evidence = l.key
	h.setEnds(g.conn)
	if err := g.send(frameHello, h); err != nil {
		return nil, err
	}
	var w hello
	if err := g.expect(frameWelcome, &w); err != nil {
		return nil, err
	}
	if refused := l.m.checkWelcome(&w, l.node); refused != nil {
		return nil, refused
	}
	if w.connection(l.m.cfg.Node) != l.connection {
		return nil, fmt.Errorf("identity %s and boot %d answer, and the link leads to identity %s and boot %d",
			uuid.UUID(w.Identity), w.Boot, l.identity, l.boot)
	}
	if refused := w.rewritten(g.conn); refused != nil {
		l.m.refused(l.node, l.info.Remote, refused)
		return nil, refused
	}
	return l.m.attach(l, g)
}

// owner returns the link that an evidence connection with this Hello belongs to. Called
// with Mesh.mu held.
func (m *Mesh) owner(h *hello) (*link, *refusal) {
	p := m.peers[elector.NodeID(h.Node)]
	if p == nil || p.link == nil {
		return nil, refuse(ReasonStale, "evidence connection without a link: node %q has none here", h.Node)
	}
	l := p.link
	if h.connection(l.node) != l.connection || subtle.ConstantTimeCompare(h.Evidence, l.key) == 0 {
		return nil, refuse(ReasonAlreadyConnected, "evidence connection of another link than is up to node %q", h.Node)
	}
	return l, nil
}

// acceptEvidence is the acceptor's part of the handshake, after the Hello.
func (m *Mesh) acceptEvidence(g *greeting, h *hello) error {
	if refused := h.rewritten(g.conn); refused != nil && !m.cfg.NoDeathProof {
		m.refused(elector.NodeID(h.Node), g.conn.RemoteAddr().String(), refused)
		g.refuse(refused)
		return refused
	}
	m.mu.RLock()
	l, refused := m.owner(h)
	m.mu.RUnlock()
	if refused == nil && !resettable(g.conn) {
		refused = refuse(ReasonNone, "evidence connection on a network without resets")
	}
	if refused != nil {
		g.refuse(refused)
		return refused
	}
	w := m.welcomeTo(h)
	w.setEnds(g.conn)
	err := m.cfg.HoldEvidence(g.conn)
	if err == nil {
		err = g.send(frameWelcome, w)
	}
	if err == nil {
		var e *evidence
		if e, err = m.attach(l, g); err == nil {
			m.others.Go(func() { m.watch(e) })
			return errNoLink
		}
	}
	reset(g.conn) // no FIN: the dialer may take it for the evidence connection by now
	return err
}

// attach makes the connection of a handshake the evidence connection of l.
func (m *Mesh) attach(l *link, g *greeting) (*evidence, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := l.p
	if p.link != l || l.ending() || m.closing {
		return nil, refuse(ReasonNone, "the link of an evidence connection has ended meanwhile")
	}
	p.dropEvidence()
	_ = g.conn.SetDeadline(time.Time{}) // fails on a dead connection, as the next read does
	p.evidence = &evidence{l: l, conn: g.conn, in: g.frames.r, done: make(chan struct{}), over: make(chan struct{})}
	return p.evidence, nil
}

// watch waits until an evidence connection ends, and acts on that. It never closes it
// otherwise than by a reset.
func (m *Mesh) watch(e *evidence) {
	defer reset(e.conn)
	var b [1]byte
	n, err := e.in.Read(b[:])
	if !m.hearsEnd(e) {
		return
	}
	how := elector.EvidenceTimeout // this kernel has given it up
	switch {
	case n > 0:
		how, err = elector.EvidenceLocal, refuse(ReasonGarbage, "data on an evidence connection")
		e.l.blame(err)
		e.l.end(how, err)
	case err == io.EOF: // §6.8: its kernel ended it, so the process is dead
		how = elector.EvidenceEOF
	case errors.Is(err, syscall.ECONNRESET):
		how = elector.EvidenceReset
	case errors.Is(err, net.ErrClosed):
		how = elector.EvidenceLocal
	}
	m.evidenceEnded(e, how)
}

// hearsEnd waits while the fault layer swallows what the peer sends, and reports whether
// e still counts then.
func (m *Mesh) hearsEnd(e *evidence) bool {
	for f := m.cfg.Faults; f != nil; {
		changed := f.changed()
		if !f.cut(e.l.node, In) {
			return true
		}
		select {
		case <-changed:
		case <-e.done:
			return false
		}
	}
	return true
}

// evidenceEnded takes note of how e ended. If that was by a FIN the link has nobody at its
// other end: what that sent before is still read.
func (m *Mesh) evidenceEnded(e *evidence, how elector.Evidence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := e.l.p
	if p.evidence != e {
		return // dropped here
	}
	e.seen = how
	close(e.over)
	if how == elector.EvidenceEOF && p.link != nil && p.provable(e.l) {
		e.l.failed(fmt.Errorf("evidence connection: %w", io.EOF))
	}
	p.seekProof()
}

// seekProof asks the dialer for the refusal that completes a proof, when both the link
// and its evidence connection have ended, that one by a FIN. Called with Mesh.mu held.
func (p *peer) seekProof() {
	if e := p.evidence; e != nil && p.link == nil && e.seen == elector.EvidenceEOF && e.provable {
		p.proof = proofWanted{addr: e.l.listens(), epoch: p.epoch}
		p.lazy = false
		p.poke()
	}
}

// evidenceEnd reports how the evidence connection of the newest link has ended: EvidenceEOF
// by a FIN and EvidenceReset by a reset from the other end, EvidenceTimeout if this kernel
// gave it up, EvidenceLocal if this process ended it. It is EvidenceNone if the connection
// stands, or there is none to know of. Called with Mesh.mu held.
func (p *peer) evidenceEnd() elector.Evidence {
	if p.evidence == nil {
		return elector.EvidenceNone
	}
	return p.evidence.seen
}

// dropEvidence ends an evidence connection that nothing is to be learned from any more.
// Called with Mesh.mu held.
func (p *peer) dropEvidence() {
	if p.evidence != nil {
		close(p.evidence.done)
		reset(p.evidence.conn)
		p.evidence = nil
	}
}

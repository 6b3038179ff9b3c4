package netmesh

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
)

// evidence is the second connection to the process behind a link. Its end shows that the
// process is gone. After the handshake no living process writes on it; at most the parent of a
// dead process writes the certificate. So no writer consumes the error that the reader needs, and
// no data is unread when the process dies: its kernel ends the connection by a FIN. A living
// process always ends it by a reset. The link cannot show a death: the reader may see a reset on
// it as an end of stream, and unread data turns the FIN of a death into a reset.
type evidence struct {
	l       *link
	addr    string // where a refused dial completes the proof
	conn    net.Conn
	in      io.Reader     // from conn, by the buffer of its handshake if there is no TLS
	dropped chan struct{} // closed by dropEvidence
	over    chan struct{} // closed when the other end has ended it
	// commitment is the hash of the peer's certificate; empty if it has none.
	commitment []byte

	// Guarded by Mesh.mu.
	// seen is how the connection ended: EvidenceEOF by a FIN from the other end, EvidenceReset by
	// a reset, EvidenceTimeout if this kernel gave it up; EvidenceNone while it stands.
	seen        elector.Evidence
	reached     bool // addr led to the living process, so a refusal there is evidence
	proofWanted bool // the dialer is to find out whether addr refuses
	dials       int  // how many were made for that
	// proof is the one that the handler is still to be told, or 0: addr refused a dial after a
	// FIN, or the certificate came.
	proof elector.Proof
}

// checkDials is how many dials in a row may fail before the log says that no death will be
// proven.
const checkDials = 3

// provableNow is what the log says when the death of the process behind a link can be proven.
const provableNow = "death can be proven"

// rareRetry is the pause before the next attempt if a proxy rewrites addresses, and the longest
// pause if nobody answers.
const rareRetry = 30 * time.Second

// keepEvidence makes the evidence connection of a link that this side dialed again and
// again as long as the link stands, and watches it until it ends.
func (l *link) keepEvidence() {
	redial := l.p.newBackoff()
	for fails := 0; l.current() && !isClosed(l.stop); {
		e, err := l.dialEvidence(l.info.Remote)
		if err == nil {
			fails = 0
			l.m.log.Debug(provableNow, "peer", l.node, "addr", e.addr)
			began := time.Now()
			l.m.watch(e)
			if time.Since(began) >= redial.max {
				redial.current = 0
			}
		} else if fails++; fails == checkDials {
			l.m.logPeer("no evidence connection: the death of this member's process would not be proven",
				"peer", l.node, "addr", l.info.Remote, "cause", err)
		}
		again := redial.next()
		if reasonOf(err) == ReasonProxied {
			again = rareRetry
		}
		pause(context.Background(), again, l.stop, nil)
	}
}

// dialEvidence makes the evidence connection at the address to which the link leads. It resets a
// connection that fails, because the acceptor may already take it for the evidence connection.
func (l *link) dialEvidence(addr string) (e *evidence, err error) {
	m := l.m
	conn, err := m.connect(l.p.ctx, l.node, addr)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(l.p.ctx, func() { reset(conn) })()
	defer func() {
		if err != nil {
			reset(conn)
			m.refused(l.node, addr, err)
		}
	}()
	c := newCertificate()
	if err := m.cfg.DeathProof.Hold(conn, c.held(l.info.Version)); err != nil {
		return nil, fmt.Errorf("hold it: %w", err)
	}
	mine := m.hello(l.node, l.dial)
	mine.Evidence, mine.Commitment = l.key, c.commitment()
	mine.Local, mine.Remote = endsOf(conn)
	h, theirs, err := l.p.introduce(conn, !l.encrypted, mine)
	if err != nil {
		return nil, err
	}
	if theirs.connKey(m.cfg.Node) != l.connKey {
		return nil, fmt.Errorf("identity %s and boot %d answer, and the link leads to %s and %d",
			uuid.UUID(theirs.Identity), theirs.Boot, l.identity, l.boot)
	}
	if refused := theirs.rewritten(conn); refused != nil {
		return nil, refused
	}
	return m.attach(l, h, theirs.Commitment)
}

// acceptEvidence is the acceptor's part of the handshake, after the Hello.
func (m *Mesh) acceptEvidence(h *handshake, theirs *hello) error {
	l, refused := m.owner(theirs)
	switch {
	case refused != nil:
	case !resettable(h.raw):
		refused = refuse(reasonNone, "evidence connection on a network without resets")
	case !m.cfg.DeathProof.Off:
		refused = theirs.rewritten(h.conn)
	}
	if refused != nil {
		m.refused(elector.NodeID(theirs.Node), h.conn.RemoteAddr().String(), refused)
		h.fail(frameRefuse, refused)
		return refused
	}
	c := newCertificate()
	w := m.welcomeTo(theirs)
	w.Local, w.Remote = endsOf(h.conn)
	w.Commitment = c.commitment()
	err := m.cfg.DeathProof.Hold(h.raw, c.held(w.MaxVersion))
	if err == nil {
		err = h.send(frameWelcome, w)
	}
	if err == nil {
		var e *evidence
		if e, err = m.attach(l, h, theirs.Commitment); err == nil {
			m.others.Go(e.checkAddress)
			m.others.Go(func() { m.watch(e) })
			return nil
		}
	}
	reset(h.conn) // no FIN: the dialer may already take it for the evidence connection
	return err
}

// owner returns the link that an evidence connection with this Hello belongs to.
func (m *Mesh) owner(h *hello) (*link, *refusal) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.peers[elector.NodeID(h.Node)]
	if p == nil || p.link == nil {
		return nil, refuse(reasonStale,
			"evidence connection without a link: node %q has none here", h.Node)
	}
	l := p.link
	if h.connKey(l.node) != l.connKey || subtle.ConstantTimeCompare(h.Evidence, l.key) == 0 {
		return nil, refuse(reasonAlreadyConnected,
			"evidence connection of another link than is up to node %q", h.Node)
	}
	return l, nil
}

// attach makes the connection of a handshake the evidence connection of l.
func (m *Mesh) attach(l *link, h *handshake, commitment []byte) (*evidence, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := l.p
	if p.link != l || isClosed(l.stop) || m.closing {
		return nil, refuse(reasonNone, "the link of an evidence connection has ended meanwhile")
	}
	p.dropEvidence()
	e := &evidence{
		l: l, addr: l.info.Address, conn: h.raw, in: h.frames.r,
		dropped: make(chan struct{}), over: make(chan struct{}), commitment: commitment,
	}
	if h.shown != nil {
		e.in = h.raw // what counts is how the kernel ends it: TLS has nothing to say any more
	}
	if l.dialed {
		e.addr, e.reached = l.info.Remote, true
	}
	if m.cfg.Faults != nil {
		e.conn = m.cfg.Faults.Wrap(p.node, h.raw, e.in)
		e.in = e.conn
	}
	_ = e.conn.SetReadDeadline(time.Time{}) // fails on a dead connection, as the next read does
	p.evidence = e
	return e, nil
}

// watch waits until an evidence connection ends, and takes note of how it ended. It closes the
// connection only by a reset.
func (m *Mesh) watch(e *evidence) {
	defer reset(e.conn)
	var shown certificate
	n, err := e.in.Read(shown[:]) // so few bytes arrive in one piece
	certified := n == len(shown) && shown.fulfils(e.commitment)
	how := elector.EvidenceTimeout // this kernel has given it up
	switch {
	case certified: // §6.5: its parent has waited for its end
		how = elector.EvidenceEOF
	case n > 0:
		how, err = elector.EvidenceLocal, refuse(ReasonGarbage, "data on an evidence connection")
		e.l.countViolation(err)
		e.l.end(how, err)
	case err == io.EOF: // §6.8: its kernel ended it, so the process is dead
		how = elector.EvidenceEOF
	case errors.Is(err, syscall.ECONNRESET):
		how = elector.EvidenceReset
	case errors.Is(err, net.ErrClosed):
		how = elector.EvidenceLocal
	}
	if m.ended(e, how, certified) && certified {
		e.l.p.conclude()
	}
}

// ended takes note of how an evidence connection ended, unless it was dropped here.
func (m *Mesh) ended(e *evidence, how elector.Evidence, certified bool) (current bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := e.l.p
	if p.evidence != e {
		return false
	}
	certified = certified && e.l.believable()
	e.seen = how
	close(e.over)
	// A link that still stands has nobody at its other end.
	switch dead := fmt.Errorf("evidence connection: %w", io.EOF); {
	case p.link == nil:
	case certified: // its FIN may be far: a kernel takes the memory first, and files then
		e.l.failed(dead, 0)
	case how == elector.EvidenceEOF && e.provable():
		e.l.failed(dead, goodbyeTime) // what was sent before the FIN is still read
	}
	if certified {
		e.proof = elector.ProofCertified
	} else {
		p.seekProof()
	}
	p.wake.wake() // the dialer may await this end
	return true
}

// checkAddress dials the address that the process behind a link has told, because a refusal there
// proves nothing about the process if the address never led to it. It goes on trying for a voter,
// which may have too little processor time to answer at first. For others it soon stops: they may
// name the address of a third party.
func (e *evidence) checkAddress() {
	l, redial := e.l, e.l.p.newBackoff()
	redial.max = rareRetry
	for fails := 1; !l.m.cfg.DeathProof.Off; fails++ {
		err := e.probe()
		if err == nil || isClosed(l.stop) || isClosed(e.dropped) || isClosed(e.over) {
			l.m.mu.Lock()
			e.reached = err == nil
			l.p.seekProof() // it may have died meanwhile
			l.m.mu.Unlock()
			if err == nil {
				l.m.log.Debug(provableNow, "peer", l.node, "addr", e.addr)
			}
			return
		}
		if fails == checkDials {
			l.m.logPeer("nobody answers where this member says it listens: its death cannot be proven",
				"peer", l.node, "addr", e.addr, "cause", err)
		}
		if fails >= checkDials && !l.m.cfg.isVoter(l.node) {
			return
		}
		pause(l.p.ctx, redial.next(), l.stop, e.dropped)
	}
}

// probe asks who answers at the address. Any process except the one behind the link is an error.
func (e *evidence) probe() error {
	l, m := e.l, e.l.m
	conn, err := m.connect(l.p.ctx, l.node, e.addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(l.p.ctx, func() { reset(conn) })()
	defer func() { _ = conn.Close() }() // no link: how it ends proves nothing
	mine := m.hello(l.node, 0)
	mine.Probe = true
	_, theirs, err := l.p.introduce(conn, !l.encrypted, mine)
	if err != nil {
		return err
	}
	c := theirs.connKey(l.dialer)
	if c.identity != l.identity || c.boot != l.boot ||
		c.twin(probed(l.process, theirs.MaxVersion)) {
		return fmt.Errorf("another process called %q answers, at boot %d of identity %s and not %d of %s",
			l.node, c.boot, c.identity, l.boot, l.identity)
	}
	return nil
}

// believable reports whether this node takes part in proofs of death and the link surely leads to
// the process that it claims to. Called with Mesh.mu held.
func (l *link) believable() bool { return !l.m.cfg.DeathProof.Off && !l.p.doubted }

// provable reports whether the connection's end and a later dial are evidence about the process
// at the other end. Called with Mesh.mu held.
func (e *evidence) provable() bool {
	return e.l.believable() && e.reached
}

// seekProof asks the dialer for the refusal that completes a proof, when the evidence
// connection has ended by a FIN. What its process sent before may still be read on the link.
// Called with Mesh.mu held.
func (p *peer) seekProof() {
	if e := p.evidence; e != nil && e.seen == elector.EvidenceEOF && e.provable() {
		e.proofWanted = true
		p.wake.wake()
	}
}

// prove tells the handler that the process behind an evidence connection is gone, if there is
// proof and the link has ended, too; it is called after each of the two. It returns the proof, or
// 0, and leaves the log line to the caller, so that none delays the handler. Called with
// callbacks held.
func (p *peer) prove() (proof elector.Proof) {
	p.m.mu.Lock()
	if e := p.evidence; e != nil && p.link == nil && !p.m.closing {
		proof, e.proof = e.proof, 0
		if proof != 0 {
			p.processGone, p.dialLater = true, true // an election needs the processor first
		}
	}
	p.m.mu.Unlock()
	if proof != 0 { // §6.5
		p.m.handler.Died(p.node, proof)
	}
	return proof
}

// conclude is prove after there is proof.
func (p *peer) conclude() {
	p.callbacks.lock()
	defer p.callbacks.unlock()
	p.logDeath(p.prove())
}

func (p *peer) logDeath(proof elector.Proof) {
	if proof != 0 {
		p.m.logPeer("peer is dead", "peer", p.node, "proof", proof.String())
	}
}

// dropEvidence ends an evidence connection from which nothing more can be learned.
// Called with Mesh.mu held.
func (p *peer) dropEvidence() {
	if p.evidence != nil {
		close(p.evidence.dropped)
		reset(p.evidence.conn)
		p.evidence = nil
	}
}

// evidenceOf says what an error of a connection or of a dial shows about the peer.
func evidenceOf(err error) elector.Evidence {
	var refused *refusal
	var timeout net.Error
	switch {
	case err == nil:
		return elector.EvidenceNone
	case errors.As(err, &refused):
		return elector.EvidenceLocal // the rules, not the network, ended it
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return elector.EvidenceEOF
	case errors.Is(err, syscall.ECONNREFUSED):
		return elector.EvidenceRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return elector.EvidenceTimeout
	case errors.Is(err, net.ErrClosed):
		return elector.EvidenceLocal
	}
	// ECONNRESET, EPIPE and whatever else breaks a connection: the connection
	// is gone, and that is all it shows.
	return elector.EvidenceReset
}

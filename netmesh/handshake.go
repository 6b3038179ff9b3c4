package netmesh

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	maxPending = 64                     // handshakes at a time that others began
	acceptRest = 100 * time.Millisecond // after a failure such as too many open files
)

// handshake is a connection on its way to be a link:
//
//	dialer                                  acceptor
//	Hello: who I am, whom I want      ->
//	                                  <-    Welcome: who I am, or Refuse
//	Join: the link is up on my side   ->
//	                                  <-    Goodbye, if it is not on mine
type handshake struct {
	raw    net.Conn // of the network
	conn   net.Conn // on which the frames pass: raw, or TLS on it
	frames *frameReader
	dec    *decoder
	enc    *encoder
	shown  *x509.Certificate // of the other end; nil without TLS
	silent bool              // it is too late to say by a frame what is wrong
	plain  bool              // the other end has no TLS: go on without, if that is accepted
}

func newHandshake(conn net.Conn, timeout time.Duration) *handshake {
	_ = conn.SetDeadline(time.Now().Add(timeout)) // fails on a dead connection, as the next read does
	return &handshake{
		raw: conn, conn: conn, frames: newFrameReader(conn, maxHello),
		dec: newDecoder(), enc: newEncoder(),
	}
}

func (h *handshake) send(kind frameKind, body any) error {
	frame, err := h.enc.encode(kind, body)
	if err != nil {
		return err
	}
	_, err = h.conn.Write(frame)
	return err
}

// expect reads the next frame, which must be of that kind, or a Refuse, which
// becomes the error.
func (h *handshake) expect(want frameKind, into any) error {
	kind, body, err := h.frames.next()
	switch {
	case err != nil && h.frames.header[0] == firstOfTLS:
		return refuse(ReasonTLS, "the other end speaks TLS, and this node does not")
	case err != nil:
		return tlsAlert(err)
	case kind == want:
		return h.dec.one(body, into)
	case kind == frameRefuse:
		var g goodbye
		if err := h.dec.one(body, &g); err != nil {
			return err
		}
		return g.refusal()
	}
	return refuse(ReasonGarbage, "frame kind %d in a handshake, want %d", kind, want)
}

// fail closes the connection, after it has told the peer which rule it broke, if any. Once the
// dialer may have its link up, an acceptor tells it by a goodbye: an orderly end without one would
// look like the death of this process.
func (h *handshake) fail(kind frameKind, cause error) {
	var broke *refusal
	if errors.As(cause, &broke) && !broke.byPeer {
		h.closeWith(kind, broke.goodbye())
		return
	}
	reset(h.conn)
}

// closeWith says a last thing, and closes so that the peer has a chance to read it.
func (h *handshake) closeWith(kind frameKind, body any) {
	if !h.silent {
		if err := h.send(kind, body); err != nil {
			reset(h.conn)
			return
		}
	}
	if err := closeWrite(h.conn); err == nil {
		// Closing while unread data waits would reset the connection and take
		// what was said with it.
		_ = h.conn.SetReadDeadline(time.Now().Add(goodbyeTime))
		_, _ = io.CopyN(io.Discard, h.conn, maxHello)
	}
	_ = h.conn.Close() // the last word is out, or this end never was a link: it proves nothing
}

// accept takes connections until the listener is closed.
func (m *Mesh) accept() {
	for {
		conn, err := m.listener.Accept()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			m.log.warn("accept", "", "cannot accept connections", "cause", err)
			time.Sleep(acceptRest)
			continue
		}
		if err != nil {
			for _, conn := range m.pending.All() {
				reset(conn)
			}
			return
		}
		// Who is honest is soon done: what has been here for longest is silent.
		if silent, crowded := m.pending.Enter(conn, conn.RemoteAddr().String()); crowded {
			m.reject(silent, refuse(reasonCrowded, "%d handshakes at a time", maxPending))
			reset(silent)
		}
		m.others.Go(func() {
			l, err := m.welcome(newHandshake(conn, m.cfg.times.handshakeMost))
			m.pending.Leave(conn)
			switch {
			case err != nil:
				m.reject(conn, err)
			case l != nil:
				go l.run()
			}
		})
	}
}

// welcome does the acceptor's part of the handshake. It returns neither a link nor an error if the
// dialer asked for no link. It has closed the connection if it returns an error.
func (m *Mesh) welcome(h *handshake) (*link, error) {
	var theirs hello
	err := h.secure(m, "")
	if err == nil {
		err = h.expect(frameHello, &theirs)
	}
	if err != nil {
		h.fail(frameRefuse, err)
		return nil, err
	}
	node := elector.NodeID(theirs.Node)
	turnAway := func(kind frameKind, err error) (*link, error) {
		m.refused(node, h.conn.RemoteAddr().String(), err)
		h.fail(kind, err)
		return nil, err
	}
	refused := h.vouch(m, &theirs)
	if refused == nil {
		refused = h.confirm(m, m.consider(h, &theirs))
	}
	if refused != nil {
		return turnAway(frameRefuse, refused)
	}
	switch {
	case m.cfg.Faults != nil && m.cfg.Faults.Cuts(node):
		pause(m.ctx, m.cfg.times.handshake, nil, nil) // a cut network gives no answer
		reset(h.conn)
		return nil, refuse(reasonNone, "cut off by the fault layer")
	case theirs.Probe:
		h.closeWith(frameWelcome, m.welcomeTo(&theirs)) // the dialer may close first
		return nil, nil
	case len(theirs.Evidence) > 0:
		return nil, m.acceptEvidence(h, &theirs)
	}
	c, by, key := theirs.connKey(node), h.claimedBy(&theirs), make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	if refused := m.offer(&c, by, key); refused != nil {
		h.fail(frameRefuse, refused)
		return nil, refused
	}
	defer m.answered(node, key)
	l, err := m.join(h, &theirs, key)
	if err != nil {
		return turnAway(frameGoodbye, err)
	}
	return l, nil
}

// consider reports why a Hello is to be refused.
func (m *Mesh) consider(h *handshake, theirs *hello) *refusal {
	if refused := m.check(theirs); refused != nil {
		return refused
	}
	if theirs.To != string(m.cfg.Node) {
		return refuse(ReasonWrongNode, "node %q was dialed, and node %q answers", theirs.To, m.cfg.Node)
	}
	m.mu.RLock()
	closing := m.closing
	m.mu.RUnlock()
	switch {
	case closing:
		return m.leaving()
	case theirs.Probe, len(theirs.Evidence) > 0:
		return nil
	}
	c := theirs.connKey(elector.NodeID(theirs.Node))
	return m.judgeNewcomer(&c, h.claimedBy(theirs))
}

// confirm checks a refusal which says that two processes use one name. If the process at the other
// end has ended meanwhile there are no two: what it said had waited here until a later start was
// taken in.
func (h *handshake) confirm(m *Mesh, refused *refusal) *refusal {
	if refused == nil || !slices.Contains(twoProcesses, refused.Reason) {
		return refused
	}
	_ = h.raw.SetReadDeadline(time.Now().Add(m.cfg.times.handshake / 4)) // fails as the read does
	n, err := h.raw.Read(make([]byte, 1))
	if n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		return refused
	}
	return refuse(reasonVanished, "it has ended: %v; before, %s", err, refused.Text)
}

func (m *Mesh) leaving() *refusal {
	return refuse(reasonClosing, "node %s is leaving", m.cfg.Node)
}

// join sends the Welcome, awaits the Join and puts the link in its place.
func (m *Mesh) join(h *handshake, theirs *hello, key []byte) (*link, error) {
	node, w := elector.NodeID(theirs.Node), m.welcomeTo(theirs)
	w.Half = half()
	w.Evidence, w.Proofs = key, m.proofs(node, frameWelcome, theirs.Dial)
	if err := h.send(frameWelcome, w); err != nil {
		return nil, err
	}
	var joined join
	if err := h.expect(frameJoin, &joined); err != nil {
		m.obey(node, h, err)
		return nil, err
	}
	info := theirs.info(h.conn)
	info.Session = session(theirs.Half, w.Half)
	l := m.newLink(h, info, theirs.connKey(node))
	l.key, l.claims = key, *h.claimedBy(theirs)
	l.claims.later = joined.Proofs
	l.openDatagrams(h)
	if refused := h.confirm(m, m.install(l)); refused != nil {
		return nil, refused
	}
	return l, nil
}

// offer takes note of the key for a process that asks for a link, or returns why it gets none:
// another link may have come up since it was judged. From then on m.links counts the handshake, so
// that Close waits from the Welcome on. The dialer goes on with the new link and gives up an older
// one, so the goodbye must be said on the new one.
func (m *Mesh) offer(c *connKey, by *claimed, key []byte) *refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return m.leaving()
	}
	p := m.peers[c.node]
	if _, refused := m.judge(c, by); refused != nil {
		return refused
	}
	if p != nil {
		p.offered = key
	} else {
		m.offered[c.node] = key // this process may begin to dial it at any moment
	}
	m.links.Add(1)
	return nil
}

// answered ends what offer began, whether there is a link or not. A later offer to a process of
// the same name stays.
func (m *Mesh) answered(node elector.NodeID, key []byte) {
	m.mu.Lock()
	if bytes.Equal(m.offered[node], key) {
		delete(m.offered, node)
	}
	m.mu.Unlock()
	m.links.Done()
}

// reject counts and logs a connection that did not become a link.
func (m *Mesh) reject(conn net.Conn, err error) {
	reason := reasonOf(err)
	m.countReason(reason)
	remote := conn.RemoteAddr().String()
	switch reason {
	case reasonAlreadyConnected, reasonNone, reasonVanished: // there is a link, or it gave up itself
		m.log.Debug("connection refused", "remote", remote, "reason", reason, "cause", err)
		return
	}
	host, _, splitErr := net.SplitHostPort(remote)
	if splitErr != nil {
		host = remote
	}
	m.log.warn(reason.String(), host, "connection refused", "remote", remote, "cause", err)
}

// connect makes a connection to where node is said to listen.
func (m *Mesh) connect(ctx context.Context, node elector.NodeID, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.times.dial)
	defer cancel()
	if m.cfg.Faults != nil && m.cfg.Faults.Cuts(node) {
		<-ctx.Done() // a cut network gives no answer
		return nil, ctx.Err()
	}
	return m.cfg.Network.Dial(ctx, addr)
}

// dial makes a connection to p and, if the handshake succeeds, starts the link: with TLS if
// this node has it, and without only if the other end has none and that is accepted.
func (m *Mesh) dial(p *peer, addr string, dying bool) error {
	err := m.dialOnce(p, addr, dying, false)
	if errors.Is(err, errPlain) {
		return m.dialOnce(p, addr, false, true)
	}
	return err
}

func (m *Mesh) dialOnce(p *peer, addr string, dying, plain bool) error {
	conn, err := m.connect(p.ctx, p.node, addr)
	if err == nil && dying {
		err = standing(conn)
	}
	if err != nil {
		return fmt.Errorf("dial %s at %s: %w", p.node, addr, err)
	}
	interrupt := context.AfterFunc(p.ctx, func() { reset(conn) })
	mine := m.hello(p.node, m.dials.Add(1))
	mine.Proofs, mine.Half = m.proofs(p.node, frameHello, mine.Dial), half()
	h, theirs, err := p.introduce(conn, plain, mine)
	m.obey(p.node, h, err)
	interrupt() // a link ends with a goodbye, whatever becomes of the dialer
	if err == nil {
		theirs.Dial = mine.Dial
		info := theirs.info(conn)
		info.Session = session(mine.Half, theirs.Half)
		l := m.newLink(h, info, theirs.connKey(m.cfg.Node))
		l.key, l.claims = theirs.Evidence, *h.claimedBy(theirs)
		l.openDatagrams(h)
		refused := m.install(l)
		if refused == nil {
			go l.run()
			return nil
		}
		err = h.confirm(m, refused)
	}
	h.fail(frameRefuse, err)
	return fmt.Errorf("handshake with %s at %s: %w", p.node, addr, err)
}

// standing returns an error if a new connection ends at once, as it does if a dying process did
// not accept it. To wait a moment costs less than to begin a handshake there.
func standing(conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(proofWait)) // fails as the read does
	n, err := conn.Read(make([]byte, 1))
	switch {
	case n > 0:
		err = errors.New("no member of a mesh answers before it is asked")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	}
	reset(conn)
	return err
}

// introduce sends the Hello and returns the Welcome of the node that it is for.
func (m *Mesh) introduce(h *handshake, mine *hello) (*hello, error) {
	if err := h.secure(m, elector.NodeID(mine.To)); err != nil {
		return nil, err
	}
	if err := h.send(frameHello, mine); err != nil {
		return nil, err
	}
	var theirs hello
	if err := h.expect(frameWelcome, &theirs); err != nil {
		return nil, err
	}
	if refused := h.vouch(m, &theirs); refused != nil {
		return nil, refused
	}
	if refused := m.check(&theirs); refused != nil {
		return nil, refused
	}
	if theirs.Node != mine.To {
		return nil, refuse(ReasonWrongNode,
			"node %q was dialed, and node %q answers", mine.To, theirs.Node)
	}
	return &theirs, nil
}

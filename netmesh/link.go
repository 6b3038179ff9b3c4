package netmesh

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// goodbyeTime bounds how long a goodbye may take, and how long its sender
// waits for the other side to close.
const goodbyeTime = 500 * time.Millisecond

// link is one connection whose handshake is complete. One goroutine reads, another writes, and a
// third hands over what comes by datagrams; run owns all.
type link struct {
	connKey
	claims     claimed
	m          *Mesh
	p          *peer // set by Mesh.install
	conn       net.Conn
	info       PeerInfo
	dialed     bool // by this side
	resettable bool
	encrypted  bool // by TLS
	meter      meter

	frames *frameReader
	dec    *decoder
	enc    *encoder // the writer's; before it starts, the handshake's
	spare  []queued
	note   Note   // that is being sent; the writer's, a field because it would escape to the heap
	out    []byte // frames that are to be written; the writer's, as asks
	asks   bool   // one of them asks for an answer
	told   *Facts // the writer's: the newest that were sent

	ready   waker         // messages wait
	noted   waker         // notes wait, or the peer has read some
	pingNow waker         // ping now
	pongs   chan ping     // pings to answer
	retired chan struct{} // another connection is kept: closed by retire
	stop    chan struct{} // closed by end
	written chan struct{} // the writer has ended

	unmarked int           // bytes of notes since a ping followed some; the writer's, as marks
	marks    [2]uint64     // those pings, the older first
	answered atomic.Uint64 // the newest ping that was answered

	pairs pairs
	inbox inbox

	key            []byte // of the evidence connection; made by the acceptor
	evidenceWanted bool   // the evidence connection is being made; the reader's

	life life

	writing  sync.Mutex // held while a write is under way, and until its error is noted
	mu       sync.Mutex
	endsSoon bool // deadlines are set for the end; nobody moves them any more
	ended    bool
	evidence elector.Evidence // valid if ended
	cause    error
	broken   bool // no goodbye can be said: reset, do not close

	questions []question // whether the process at the other end lives
}

func (m *Mesh) newLink(h *handshake, info PeerInfo, c connKey) *link {
	l := &link{
		connKey: c, m: m, conn: h.conn, info: info, dialed: c.dialer == m.cfg.Node,
		resettable: resettable(h.raw), encrypted: h.shown != nil,
		frames: h.frames, dec: h.dec, enc: h.enc,
		ready: newWaker(), noted: newWaker(), pingNow: newWaker(), pongs: make(chan ping, 3*againIn),
		retired: make(chan struct{}), stop: make(chan struct{}), written: make(chan struct{}),
		inbox: inbox{some: newWaker()},
	}
	l.frames.max = maxFrame
	if !m.cfg.isVoter(l.node) {
		l.dec.names.most = maxInternedGuest
	}
	// In place of the handshake's deadlines; fails on a dead connection, as the next read does.
	_ = l.conn.SetDeadline(time.Time{})
	return l
}

// run serves the link until it ends, and then removes every trace of it.
func (l *link) run() {
	defer l.m.links.Done()
	go l.write()
	if l.pairs.poster != nil {
		l.m.socket.register(l, true)
		l.m.others.Go(l.handOver)
	}
	ev, err := l.verdict(l.read())
	l.m.socket.register(l, false)
	l.m.lose(l, ev, err)
	l.end(ev, err)
	<-l.written
	l.mu.Lock()
	broken := l.broken
	l.mu.Unlock()
	if broken {
		reset(l.conn)
	} else {
		_ = l.conn.Close() // the goodbye is out; nothing is left to go wrong
	}
	l.m.mu.Lock()
	delete(l.m.live, l)
	l.m.mu.Unlock()
}

// end makes the link say goodbye and end; the first call counts.
func (l *link) end(ev elector.Evidence, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended, l.evidence, l.cause = true, ev, cause
	close(l.stop)
	if !l.endsSoon {
		// A write that blocks must not block the goodbye.
		_ = l.conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
	}
}

// breakOff resets the connection: no goodbye can be said any more.
func (l *link) breakOff() {
	l.mu.Lock()
	l.broken = true
	l.mu.Unlock()
	reset(l.conn)
}

// retire ends the link because kept takes its place. The side that accepted kept knows that both
// ends have it, and says goodbye. The other side waits for that goodbye, so that neither ever
// loses its only link.
func (l *link) retire(kept *link) {
	if !kept.dialed {
		l.end(elector.EvidenceLocal, l.superseded())
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isClosed(l.retired) {
		close(l.retired)
	}
}

func (l *link) superseded() *refusal {
	return refuse(reasonSuperseded, "another connection to %s is kept", l.node)
}

// current reports whether l is the link to its peer.
func (l *link) current() bool {
	l.m.mu.RLock()
	defer l.m.mu.RUnlock()
	return l.p.link == l
}

// endIn makes the reader end within d, whatever comes in.
func (l *link) endIn(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endsSoon = true
	_ = l.conn.SetReadDeadline(time.Now().Add(d))
}

// failed takes note that writing is over, and lets the reader go on for d. The reader finds the
// better evidence: the FIN of a dead peer may have arrived already.
func (l *link) failed(err error, d time.Duration) {
	l.mu.Lock()
	l.broken = true
	if l.cause == nil {
		l.cause = err
	}
	l.mu.Unlock()
	l.endIn(d)
}

// verdict says how the link ended, given the error that ended the reader. An end of stream may
// be a reset whose error the writer got.
func (l *link) verdict(err error) (elector.Evidence, error) {
	eof := errors.Is(err, io.EOF)
	if eof {
		l.endIn(goodbyeTime)
		_ = l.conn.SetWriteDeadline(time.Now()) // fails on a dead connection, as the write does
		l.writing.Lock()
		defer l.writing.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var told *refusal
	switch {
	case l.ended:
		return l.evidence, l.cause
	case errors.As(err, &told) && told.endsLink:
		return elector.EvidenceGoodbye, err
	case eof && errors.Is(l.cause, syscall.ECONNRESET),
		l.cause != nil && errors.Is(err, os.ErrDeadlineExceeded):
		return evidenceOf(l.cause), l.cause // the writer's error, and no better one came
	case l.broken && errors.Is(err, net.ErrClosed):
		return elector.EvidenceReset, fmt.Errorf("connection reset here: %w", err)
	}
	return evidenceOf(err), err
}

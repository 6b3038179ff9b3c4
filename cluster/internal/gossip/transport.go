package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// A stream begins with two fields; one without them is refused. A field is a byte that says what
// it is, a length, and the text. The first is the dialer's name, behind helloMagic, or behind
// sealedMagic if it is encrypted: the fault layer must know the peer of a stream, and its source
// port does not tell. The second is the cluster's name, behind labelMagic, as memberlist writes it.
const (
	helloMagic   = 0xB6
	sealedMagic  = 0xB7
	labelMagic   = 244
	helloTimeout = 3 * time.Second
)

const (
	// maxStreams bounds the accepted streams: anybody who reaches the port can open some.
	maxStreams = 32
	// bindAttempts is how often Start tries a port that the system chose for TCP and that
	// may be in use for UDP.
	bindAttempts = 10
)

// transport is memberlist's own, with these additions: the envelope with its encryption, the
// dialer's name on streams, a fault layer (Blocked), a bound for the accepted streams, a check of
// what memberlist receives (see border.go), and a Shutdown that closes all streams.
type transport struct {
	*memberlist.NetTransport
	node     elector.NodeID
	members  *members
	blocked  func(elector.NodeID) bool
	log      hclog.Logger
	arrived  atomic.Uint64 // packets
	envelope atomic.Pointer[envelope]

	packets  chan *memberlist.Packet
	streams  chan net.Conn
	accepted *limit.Crowd[*stream]
	ctx      context.Context // ends when Shutdown begins: dials and streams end
	cancel   context.CancelFunc
	done     chan struct{} // closed when the listeners have ended: the pumps may end
	ended    sync.Once
	wg       sync.WaitGroup
}

func newTransport(
	cfg *Config, bind netip.AddrPort, members *members, log hclog.Logger,
) (*transport, error) {
	attempts := 1
	if bind.Port() == 0 {
		attempts = bindAttempts
	}
	var inner *memberlist.NetTransport
	var err error
	for range attempts {
		inner, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{bind.Addr().String()}, BindPort: int(bind.Port()),
			Logger: debugLogger(log),
		})
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, explainBind(bind, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &transport{
		NetTransport: inner, node: cfg.Node, members: members, blocked: cfg.Blocked, log: log,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn),
		accepted: limit.NewCrowd[*stream](maxStreams), ctx: ctx, cancel: cancel,
		done: make(chan struct{}),
	}
	t.envelope.Store(newEnvelope(cfg.Cluster, cfg.Keys))
	t.wg.Go(t.pumpPackets)
	t.wg.Go(t.pumpStreams)
	return t, nil
}

func debugLogger(to hclog.Logger) *log.Logger {
	return to.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})
}

// cut reports whether the fault layer cuts off a peer. If node is "" the peer is the member at
// addr.
func (t *transport) cut(node elector.NodeID, addr string) bool {
	if t.blocked == nil {
		return false
	}
	if node == "" {
		node = t.members.nodeAt(addr)
	}
	return node != "" && t.blocked(node)
}

// PacketCh returns the packets that passed the fault layer and the border.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh returns the streams that began with a valid hello and passed the fault layer.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// WriteToAddress sends one packet. A packet to a peer that is cut off is lost without an error,
// as on a network.
func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	if t.cut(elector.NodeID(to.Name), to.Addr) {
		return time.Now(), nil
	}
	packet, err := t.envelope.Load().wrapPacket(b)
	if err != nil {
		return time.Time{}, err
	}
	return t.NetTransport.WriteToAddress(packet, to)
}

// DialAddressTimeout opens a stream and writes its first fields. Shutdown ends it early.
func (t *transport) DialAddressTimeout(
	to memberlist.Address, timeout time.Duration,
) (net.Conn, error) {
	if t.cut(elector.NodeID(to.Name), to.Addr) {
		return nil, fmt.Errorf("dial %s: cut by the fault layer", to.String())
	}
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(t.ctx, "tcp", to.Addr)
	var failed *net.OpError
	if errors.As(err, &failed) {
		err = failed.Err // without the address
	}
	if err != nil {
		return nil, fmt.Errorf("dial %s for gossip: %w", to.String(), err)
	}
	s := t.track(conn)
	err = s.SetDeadline(time.Now().Add(timeout))
	if err == nil {
		_, err = conn.Write(t.hello())
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("say hello to %s: %w", to.String(), err)
	}
	return s, nil
}

func (t *transport) hello() []byte {
	e, magic, name := t.envelope.Load(), byte(helloMagic), []byte(t.node)
	if e.keys.Sends() {
		magic, name = sealedMagic, e.seal(nil, name, e.label)
	}
	hello := append([]byte{magic, byte(len(name))}, name...)
	return append(append(hello, labelMagic, byte(len(e.label))), e.label...)
}

// Shutdown closes the listeners and every stream, and waits for what ran on them.
// It may be called again.
func (t *transport) Shutdown() error {
	t.cancel()
	err := t.NetTransport.Shutdown() // its listeners may wait for the pumps, so it ends first
	t.ended.Do(func() { close(t.done) })
	t.wg.Wait()
	return err
}

func (t *transport) pumpPackets() {
	for {
		select {
		case p := <-t.NetTransport.PacketCh():
			if t.cut("", p.From.String()) {
				continue
			}
			text, err := t.envelope.Load().openPacket(p.Buf)
			if err != nil {
				t.log.Debug("packet refused", "from", p.From, "error", err)
				continue
			}
			p.Buf = text
			t.arrived.Add(1)
			select {
			case t.packets <- p:
			case <-t.ctx.Done():
			}
		case <-t.done:
			return
		}
	}
}

func (t *transport) pumpStreams() {
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			s := t.track(conn)
			s.accepted, s.leave = true, func() { t.accepted.Leave(s) }
			if old, crowded := t.accepted.Enter(s, conn.RemoteAddr().String()); crowded {
				t.log.Debug("stream closed: there are too many", "from", old.RemoteAddr())
				_ = old.Close()
			}
			t.wg.Go(func() { t.greet(s) })
		case <-t.done:
			return
		}
	}
}

// greet reads the first fields of an incoming stream and hands the stream to memberlist.
func (t *transport) greet(s *stream) {
	node, err := t.readHello(s.Conn)
	if err == nil && t.cut(node, "") {
		err = fmt.Errorf("%s is cut off by the fault layer", node)
	}
	if err != nil {
		t.log.Debug("stream refused", "from", s.RemoteAddr(), "error", err)
		_ = s.Close()
		return
	}
	select {
	case t.streams <- s:
	case <-t.ctx.Done():
	}
}

// readHello reads the first fields of a stream. The name of the node is "" if it is encrypted with
// a key that this node does not have: only the fault layer uses the name.
func (t *transport) readHello(conn net.Conn) (node elector.NodeID, err error) {
	if err := conn.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return "", err
	}
	magic, name, err := readField(conn)
	if err != nil {
		return "", fmt.Errorf("read hello: %w", err)
	}
	e := t.envelope.Load()
	switch magic {
	case helloMagic:
	case sealedMagic:
		name, _ = e.unseal(name, e.label)
	default:
		return "", fmt.Errorf("stream begins with byte %#x, not with a hello (%#x)", magic, helloMagic)
	}
	magic, label, err := readField(conn)
	if err == nil && (magic != labelMagic || !bytes.Equal(label, e.label)) {
		err = fmt.Errorf("stream of cluster %q", label)
	}
	if err != nil {
		return "", err
	}
	return elector.NodeID(name), conn.SetDeadline(time.Time{})
}

// readField reads a field: a byte that says what it is, a length, and the text.
func readField(r io.Reader) (magic byte, text []byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	text = make([]byte, head[1])
	_, err = io.ReadFull(r, text)
	return head[0], text, err
}

// stream is a stream that Shutdown closes, so that memberlist need not wait for time-outs.
// memberlist reads from it what passes the border. One goroutine reads it.
type stream struct {
	net.Conn
	t        *transport
	accepted bool
	untrack  func() bool
	leave    func()    // gives up its place among the accepted streams
	in       io.Reader // what passed the border; nil before the first Read
}

// track lets conn be closed at Shutdown, or at once after it.
func (t *transport) track(conn net.Conn) *stream {
	untrack := context.AfterFunc(t.ctx, func() { _ = conn.Close() })
	return &stream{Conn: conn, t: t, untrack: untrack, leave: func() {}}
}

// Read returns what passed the border. If the keys of both ends differ, it tells the dialer why
// nothing passes.
func (s *stream) Read(b []byte) (int, error) {
	if s.in == nil {
		in, err := s.t.envelope.Load().openStream(s.Conn)
		if err != nil {
			s.refuse(err)
			return 0, err
		}
		s.in = in
	}
	return s.in.Read(b)
}

// refuse answers a dialer with other keys with memberlist's message for an error. Its text is
// from the dialer's point of view.
func (s *stream) refuse(err error) {
	switch {
	case !s.accepted:
		return
	case errors.Is(err, errNoKey):
		err = errPlain
	case !errors.Is(err, errWrongKey) && !errors.Is(err, errPlain):
		return
	}
	_, _ = s.Write(encode(typeError, struct{ Error string }{err.Error()})) // or it is just closed
}

// Write sends a message. memberlist writes each message by one call.
func (s *stream) Write(message []byte) (int, error) {
	_, err := s.Conn.Write(s.t.envelope.Load().wrapMessage(message))
	if err != nil {
		return 0, err
	}
	return len(message), nil
}

// Close closes the stream, and gives up its place.
func (s *stream) Close() error {
	s.untrack()
	s.leave()
	return s.Conn.Close()
}

package gossip

import (
	"context"
	"crypto/hmac"
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

// A stream begins with a hello: helloMagic, the length of the dialer's name, the
// name. Its source port means nothing, so only the hello tells the fault layer which
// peer a stream belongs to. Nodes refuse a stream without one. If gossip is encrypted it
// is markMagic, and a mark in place of the name.
const (
	helloMagic   = 0xB6
	markMagic    = 0xB7
	markSize     = 16
	helloTimeout = 3 * time.Second
)

const (
	// maxStreams bounds the accepted streams: anybody who reaches the port can open some.
	maxStreams = 32
	// bindAttempts is how often a port chosen by the system for TCP may turn out to
	// be taken for UDP before Start gives up.
	bindAttempts = 10
)

// transport is memberlist's own, with these things added: streams begin with the
// dialer's name, Blocked cuts peers off, accepted streams are bounded, so is what
// memberlist makes of what comes in (see border.go), and Shutdown leaves no stream behind.
type transport struct {
	*memberlist.NetTransport
	node    elector.NodeID
	cluster string
	members *members
	blocked func(elector.NodeID) bool
	log     hclog.Logger
	arrived atomic.Uint64 // packets
	keys    atomic.Pointer[Keys]

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
		NetTransport: inner, node: cfg.Node, cluster: cfg.Cluster, members: members,
		blocked: cfg.Blocked, log: log,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn),
		accepted: limit.NewCrowd[*stream](maxStreams), ctx: ctx, cancel: cancel,
		done: make(chan struct{}),
	}
	t.keys.Store(&cfg.Keys)
	t.wg.Go(t.pumpPackets)
	t.wg.Go(t.pumpStreams)
	return t, nil
}

func debugLogger(to hclog.Logger) *log.Logger {
	return to.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})
}

// cut reports whether nothing may pass between this node and a peer, of which only
// the address may be known.
func (t *transport) cut(node elector.NodeID, addr string) bool {
	if t.blocked == nil {
		return false
	}
	if node == "" {
		node = t.members.nodeAt(addr)
	}
	return node != "" && t.blocked(node)
}

// PacketCh returns the packets that were not cut.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh returns the streams that said hello and were not cut.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// WriteToAddress sends one packet; to a cut peer it vanishes, as on a network.
func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	if t.cut(elector.NodeID(to.Name), to.Addr) {
		return time.Now(), nil
	}
	return t.NetTransport.WriteToAddress(b, to)
}

// DialAddressTimeout opens a stream and says hello. It ends early at Shutdown.
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
		_, err = s.Write(t.hello())
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("say hello to %s: %w", to.String(), err)
	}
	return s, nil
}

func (t *transport) hello() []byte {
	if keys := *t.keys.Load(); keys.Sends() {
		return append([]byte{markMagic}, mark(keys[0], string(t.node))...)
	}
	return append([]byte{helloMagic, byte(len(t.node))}, t.node...)
}

// border is that of the keys in use.
func (t *transport) border() border { return border{t.cluster, *t.keys.Load()} }

// keptTransport is what a memberlist gets, which may end while the transport goes on.
type keptTransport struct{ *transport }

// Shutdown leaves the transport as it is.
func (keptTransport) Shutdown() error { return nil }

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
			if err := t.border().checkPacket(p.Buf); err != nil {
				t.log.Debug("packet refused", "from", p.From, "error", err)
				continue
			}
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
			s.leave = func() { t.accepted.Leave(s) }
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

// greet reads the hello of an incoming stream and hands the stream to memberlist.
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

func (t *transport) readHello(conn net.Conn) (node elector.NodeID, err error) {
	if err := conn.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return "", err
	}
	var magic, size [1]byte
	if _, err := io.ReadFull(conn, magic[:]); err != nil {
		return "", fmt.Errorf("read hello: %w", err)
	}
	switch magic[0] {
	case helloMagic:
		_, err = io.ReadFull(conn, size[:])
	case markMagic:
		size[0] = markSize
	default:
		return "", fmt.Errorf("stream begins with byte %#x, not with a hello (%#x)",
			magic[0], helloMagic)
	}
	name := make([]byte, size[0])
	if err == nil {
		_, err = io.ReadFull(conn, name)
	}
	if err != nil {
		return "", fmt.Errorf("read name in hello: %w", err)
	}
	if magic[0] == markMagic {
		name = []byte(t.marked(name))
	}
	return elector.NodeID(name), conn.SetDeadline(time.Time{})
}

// marked returns the member for which a mark stands, or "". Only the fault layer asks.
func (t *transport) marked(hello []byte) elector.NodeID {
	if t.blocked == nil {
		return ""
	}
	for _, key := range t.keys.Load().real() {
		for _, node := range t.members.names() {
			if hmac.Equal(hello, mark(key, string(node))) {
				return node
			}
		}
	}
	return ""
}

// stream is one that Shutdown closes, so that it does not wait for time-outs, and of which
// memberlist reads what may pass the border. One goroutine reads it.
type stream struct {
	net.Conn
	border  func() border
	untrack func() bool
	leave   func()    // gives up its place among those that were accepted
	in      io.Reader // what may pass; nil before the first Read
}

// track makes conn end with the transport, at once if that has ended.
func (t *transport) track(conn net.Conn) *stream {
	untrack := context.AfterFunc(t.ctx, func() { _ = conn.Close() })
	return &stream{Conn: conn, border: t.border, untrack: untrack, leave: func() {}}
}

// Read returns what may pass.
func (s *stream) Read(b []byte) (int, error) {
	if s.in == nil {
		in, err := s.border().openStream(s.Conn)
		if err != nil {
			return 0, err
		}
		s.in = in
	}
	return s.in.Read(b)
}

// Close closes the stream, and gives up its place.
func (s *stream) Close() error {
	s.untrack()
	s.leave()
	return s.Conn.Close()
}

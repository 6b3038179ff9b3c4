package gossip

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"

	"github.com/bmqelect/bmqelect/elector"
)

// bindAttempts is how often a port chosen by the system for TCP may turn out to
// be taken for UDP before Start gives up.
const bindAttempts = 10

// transport is memberlist's own, with four things added: streams begin with the
// dialer's name, those of another cluster are told so, Blocked cuts peers off, and
// Shutdown leaves no stream behind.
type transport struct {
	*memberlist.NetTransport
	node    elector.NodeID
	border  *border
	table   *table
	blocked func(elector.NodeID, string) bool
	log     hclog.Logger

	packets chan *memberlist.Packet
	streams chan net.Conn
	ctx     context.Context // ends when Shutdown begins: dials and hand-overs give up
	cancel  context.CancelFunc
	done    chan struct{} // closed when the listeners have ended: the pumps may end
	ended   sync.Once
	wg      sync.WaitGroup
	conns   connSet
	greets  chan struct{} // one token for each stream whose hello is awaited
}

func newTransport(cfg *Config, bind netip.AddrPort, members *table, log hclog.Logger) (*transport, error) {
	inner, err := listen(bind, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &transport{
		NetTransport: inner,
		node:         cfg.Node,
		border:       &border{cluster: cfg.Cluster, node: cfg.Node, found: cfg.Found, log: log},
		table:        members,
		blocked:      cfg.Blocked,
		log:          log,
		packets:      make(chan *memberlist.Packet),
		streams:      make(chan net.Conn),
		ctx:          ctx,
		cancel:       cancel,
		done:         make(chan struct{}),
		greets:       make(chan struct{}, maxGreets),
	}
	t.wg.Go(t.pumpPackets)
	t.wg.Go(t.pumpStreams)
	return t, nil
}

func listen(bind netip.AddrPort, log hclog.Logger) (*memberlist.NetTransport, error) {
	attempts := 1
	if bind.Port() == 0 {
		attempts = bindAttempts
	}
	var failure error
	for range attempts {
		inner, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{bind.Addr().String()},
			BindPort:  int(bind.Port()),
			Logger:    libraryLogger(log),
		})
		if err == nil {
			return inner, nil
		}
		failure = err
	}
	return nil, explainBind(bind, failure)
}

// cut reports whether nothing may pass between this node and a peer.
func (t *transport) cut(node elector.NodeID, addr string) bool {
	if t.blocked == nil {
		return false
	}
	if node == "" {
		node = t.table.nodeAt(addr)
	}
	return t.blocked(node, addr)
}

// PacketCh returns the packets that were not cut.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh returns the streams that said hello and were not cut.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// WriteTo sends one packet.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends one packet; to a cut peer it vanishes, as on a network.
func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	if t.cut(elector.NodeID(to.Name), to.Addr) {
		return time.Now(), nil
	}
	return t.NetTransport.WriteToAddress(b, to)
}

// DialTimeout opens a stream.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout opens a stream and says hello. It ends early at Shutdown.
func (t *transport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if t.cut(elector.NodeID(to.Name), to.Addr) {
		return nil, fmt.Errorf("dial %s: cut by the fault layer", to.String())
	}
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(t.ctx, "tcp", to.Addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s for gossip: %w", to.String(), err)
	}
	tracked, err := t.conns.add(conn)
	if err != nil {
		return nil, fmt.Errorf("dial %s for gossip: %w", to.String(), err)
	}
	if err := sayHello(tracked, t.node, timeout); err != nil {
		_ = tracked.Close()
		return nil, fmt.Errorf("say hello to %s: %w", to.String(), err)
	}
	return tracked, nil
}

// Shutdown closes the listeners and every stream, and waits for what ran on them.
// It may be called again.
func (t *transport) Shutdown() error {
	t.cancel()
	t.conns.closeAll()
	err := t.NetTransport.Shutdown() // its listeners may wait for the pumps, so it ends first
	t.ended.Do(func() { close(t.done) })
	t.wg.Wait()
	return err
}

func (t *transport) pumpPackets() {
	for {
		select {
		case p := <-t.NetTransport.PacketCh():
			if !t.cut("", p.From.String()) {
				t.handPacket(p)
			}
		case <-t.done:
			return
		}
	}
}

func (t *transport) handPacket(p *memberlist.Packet) {
	select {
	case t.packets <- p:
	case <-t.ctx.Done():
	}
}

func (t *transport) pumpStreams() {
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			t.accept(conn)
		case <-t.done:
			return
		}
	}
}

func (t *transport) accept(conn net.Conn) {
	tracked, err := t.conns.add(conn)
	if err != nil {
		return
	}
	select {
	case t.greets <- struct{}{}:
		t.wg.Go(func() {
			t.greet(tracked)
			<-t.greets
		})
	default:
		t.log.Debug("stream refused: too many have not said hello", "from", conn.RemoteAddr())
		_ = tracked.Close()
	}
}

// greet reads the hello of an incoming stream and hands it on.
func (t *transport) greet(conn net.Conn) {
	from := conn.RemoteAddr().String()
	node, err := readHello(conn)
	if err != nil {
		t.log.Debug("stream refused", "from", from, "error", err)
		_ = conn.Close()
		return
	}
	if t.cut(node, from) {
		_ = conn.Close()
		return
	}
	if conn = t.border.pass(conn, node); conn == nil {
		return
	}
	select {
	case t.streams <- conn:
	case <-t.ctx.Done():
		_ = conn.Close()
	}
}

package netmesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/rawcall"
)

// PacketNetwork is a Network that has datagrams, too. Beats travel by them where they arrive.
type PacketNetwork interface {
	// ListenPacket listens for datagrams on the address of a listener of the same Network. Unless
	// the socket is a *net.UDPConn, WriteTo gets addresses whose String is one for Dial. It must
	// not wait.
	ListenPacket(addr string) (net.PacketConn, error)
}

// ListenPacket listens on addr for UDP.
func (tcpNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	return new(net.ListenConfig).ListenPacket(context.Background(), "udp", addr)
}

// socket sends and receives the datagrams of all sessions of a mesh. One goroutine reads it, which
// never waits for a link or its handler.
type socket struct {
	conn net.PacketConn   // nil if there are no datagrams
	udp  *rawcall.Packets // conn, if that is UDP of the kernel
	why  error            // there are none

	mu    sync.RWMutex
	links map[uint64]*link // by session

	dropped [droppedEnd]atomic.Uint64
}

// dropped says why a datagram does not count.
type dropped uint8

const (
	droppedMalformed dropped = iota
	droppedUnknown
	droppedForged
	droppedOld
	droppedEnd
)

// DroppedDatagrams returns how many datagrams came since Listen and did not count, by cause:
// malformed ones, those of an unknown session, which may be over, forged ones, and old ones, which
// are copies.
func (m *Mesh) DroppedDatagrams() map[string]uint64 {
	counts := map[string]uint64{}
	for c, name := range [droppedEnd]string{"malformed", "unknown-session", "forged", "old"} {
		counts[name] = m.socket.dropped[c].Load()
	}
	return counts
}

// listenPackets opens the socket at the address of the listener. Without it beats go on the stream.
func (m *Mesh) listenPackets() {
	s, addr := &m.socket, m.listener.Addr().String()
	s.links = map[uint64]*link{}
	network, ok := m.cfg.Network.(PacketNetwork)
	if !ok {
		s.why = errors.New(NoDatagrams)
		return
	}
	conn, err := network.ListenPacket(addr)
	if udp, ok := conn.(*net.UDPConn); ok && err == nil {
		s.udp, err = rawcall.NewPackets(udp)
	}
	if err != nil {
		s.why = fmt.Errorf("cannot listen for datagrams at %s: %w", addr, err)
		m.log.Warn("beats go over TCP alone", "cause", s.why)
		return
	}
	s.conn = conn
	m.others.Go(m.readPackets)
}

// poster sends datagrams to one address, and never waits. It is not for concurrent use.
type poster interface{ Send(b []byte) error }

// to returns the poster to an address.
func (s *socket) to(addr string) (poster, error) {
	switch {
	case s.conn == nil:
		return nil, s.why
	case s.udp == nil:
		return &textPoster{s.conn, addr}, nil
	}
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("no address for datagrams: %w", err)
	}
	sender, err := s.udp.To(to)
	if err != nil {
		return nil, err
	}
	return sender, nil
}

// textPoster sends on a network that finds addresses by their text. It is the address, too.
type textPoster struct {
	conn net.PacketConn
	addr string
}

func (*textPoster) Network() string  { return "udp" }
func (p *textPoster) String() string { return p.addr }
func (p *textPoster) Send(b []byte) error {
	_, err := p.conn.WriteTo(b, p)
	return err
}

// readPackets takes datagrams until the socket is closed.
func (m *Mesh) readPackets() {
	var b [maxDatagram + 1]byte // what is longer than any datagram is malformed
	var n int
	var stamp time.Time
	var err error
	for {
		if m.socket.udp != nil {
			n, stamp, err = m.socket.udp.Receive(b[:])
		} else {
			n, _, err = m.socket.conn.ReadFrom(b[:])
		}
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			m.log.warn("datagrams", "", "cannot receive datagrams", "cause", err)
			time.Sleep(acceptRest)
			continue
		}
		if why, ok := m.takePacket(b[:n], cameAt(stamp, time.Now())); !ok {
			m.socket.dropped[why].Add(1)
		}
	}
}

// cameAt is when a datagram came that is read now. The stamp of the kernel is by the wall clock,
// which may be set meanwhile: it gives the age alone, and only one that is plausible.
func cameAt(stamp, now time.Time) time.Time {
	if age := now.Sub(stamp); age >= 0 && age <= time.Second {
		return now.Add(-age)
	}
	return now
}

// takePacket takes a datagram, or says why it does not count. One that a stranger has made up costs
// a look into a map.
func (m *Mesh) takePacket(packet []byte, came time.Time) (dropped, bool) {
	kind, session, sequence, ok := readHead(packet)
	if !ok {
		return droppedMalformed, false
	}
	m.socket.mu.RLock()
	l := m.socket.links[session]
	m.socket.mu.RUnlock()
	if l == nil {
		return droppedUnknown, false
	}
	if m.cfg.Faults != nil {
		if _, lost := m.cfg.Faults.Datagram(l.node, true); lost {
			return 0, true
		}
	}
	return l.inbox.take(kind, sequence, packet, came)
}

// register lets the datagrams of a session find its link, or no link. Of two links with one number,
// which is unlikely, the later one has none.
func (s *socket) register(l *link, finds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := l.info.Session
	if old := s.links[number]; finds && old == nil {
		s.links[number] = l
	} else if !finds && old == l {
		delete(s.links, number)
	}
}

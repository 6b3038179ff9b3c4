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
	// ListenPacket listens for datagrams on host:port, which is the address of a listener of the
	// same Network. Addresses that WriteTo gets have the form of those that Dial gets, unless the
	// socket is a *net.UDPConn. WriteTo must not wait.
	ListenPacket(addr string) (net.PacketConn, error)
}

// ListenPacket listens on addr for UDP.
func (tcpNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	return (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", addr)
}

// poster sends datagrams to one address, and never waits. It is not for concurrent use.
type poster interface{ Send(b []byte) error }

// socket sends and receives the datagrams of all sessions of a mesh. One goroutine reads it, which
// never waits for a link or its handler.
type socket struct {
	conn    net.PacketConn   // nil if there are no datagrams
	packets *rawcall.Packets // of conn, if that is UDP of the kernel
	why     string           // there are none

	mu    sync.RWMutex
	links map[uint64]*link // by session

	refused [causes]atomic.Uint64
}

// cause says why a datagram that came does not count.
type cause uint8

const (
	causeMalformed cause = iota // its form is none of this build
	causeUnknown                // its session is none of this mesh
	causeForged                 // its proof is wrong
	causeOld                    // it, or a newer one, came before
	causes
)

// DatagramStats counts datagrams that came and did not count since Listen.
type DatagramStats struct {
	Malformed uint64 // of no form that this build knows
	Unknown   uint64 // of a session that is over, or never was
	Forged    uint64 // the proof is wrong
	Old       uint64 // copies, and beats that a newer one has overtaken
}

// Datagrams returns how many datagrams did not count.
func (m *Mesh) Datagrams() DatagramStats {
	of := func(c cause) uint64 { return m.socket.refused[c].Load() }
	return DatagramStats{
		Malformed: of(causeMalformed), Unknown: of(causeUnknown), Forged: of(causeForged), Old: of(causeOld),
	}
}

// listenPackets opens the socket at the address of the listener. Beats go on the streams without it.
func (m *Mesh) listenPackets() {
	s, addr := &m.socket, m.listener.Addr().String()
	s.links = map[uint64]*link{}
	network, ok := m.cfg.Network.(PacketNetwork)
	if !ok {
		s.why = "the network of the program has no datagrams"
		return
	}
	conn, err := network.ListenPacket(addr)
	if udp, ok := conn.(*net.UDPConn); ok && err == nil {
		s.packets, err = rawcall.NewPackets(udp)
	}
	if err != nil {
		s.why = fmt.Sprintf("cannot listen for datagrams at %s: %v", addr, err)
		m.log.Warn("beats go on the stream", "cause", s.why)
		return
	}
	s.conn = conn
	m.others.Go(m.readPackets)
}

func (s *socket) close() {
	if s.conn != nil {
		_ = s.conn.Close() // nothing to be done about a failure
	}
}

// to returns the poster to an address.
func (s *socket) to(addr string) (poster, error) {
	switch {
	case s.conn == nil:
		return nil, errors.New(s.why)
	case s.packets == nil:
		return textPoster{s.conn, textAddr(addr)}, nil
	}
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("no address for datagrams: %w", err)
	}
	sender, err := s.packets.To(to)
	if err != nil {
		return nil, err
	}
	return sender, nil
}

// textPoster sends on a network that finds addresses by their text.
type textPoster struct {
	conn net.PacketConn
	to   net.Addr
}

func (p textPoster) Send(b []byte) error {
	_, err := p.conn.WriteTo(b, p.to)
	return err
}

type textAddr string

func (textAddr) Network() string  { return "udp" }
func (a textAddr) String() string { return string(a) }

// readPackets takes datagrams until the socket is closed.
func (m *Mesh) readPackets() {
	var b [maxDatagram + 1]byte // one byte more than any has: what is longer is malformed
	for {
		n, stamp, err := m.socket.read(b[:])
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			m.log.warn("datagrams", "", "cannot receive datagrams", "cause", err)
			time.Sleep(acceptRest)
			continue
		}
		if c, ok := m.takePacket(b[:n], cameAt(stamp, time.Now())); !ok {
			m.socket.refused[c].Add(1)
		}
	}
}

func (s *socket) read(b []byte) (n int, stamp time.Time, err error) {
	if s.packets != nil {
		return s.packets.Receive(b)
	}
	n, _, err = s.conn.ReadFrom(b)
	return n, stamp, err
}

// cameAt is when a datagram came that is read now. The stamp of the kernel is by the wall clock,
// which may be set meanwhile; so it gives the age alone, and only one that is plausible.
func cameAt(stamp, now time.Time) time.Time {
	if age := now.Sub(stamp); age >= 0 && age <= time.Second {
		return now.Add(-age)
	}
	return now
}

// takePacket takes a datagram, or says why it does not count. A flood of garbage costs at most a
// look into a map for each.
func (m *Mesh) takePacket(packet []byte, came time.Time) (c cause, ok bool) {
	kind, session, sequence, ok := readHead(packet)
	if !ok {
		return causeMalformed, false
	}
	m.socket.mu.RLock()
	l := m.socket.links[session]
	m.socket.mu.RUnlock()
	if l == nil {
		return causeUnknown, false
	}
	if m.cfg.Faults != nil {
		if _, lost := m.cfg.Faults.Datagram(l.node, true); lost {
			return 0, true
		}
	}
	return l.inbox.take(kind, sequence, packet, came)
}

// register lets the datagrams of a session find its link, and unregister ends that. In the unlikely
// case that two links have one number the later one has no datagrams.
func (s *socket) register(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[l.info.Session] == nil {
		s.links[l.info.Session] = l
	}
}

func (s *socket) unregister(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[l.info.Session] == l {
		delete(s.links, l.info.Session)
	}
}

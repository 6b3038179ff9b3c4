//go:build !linux

package rawcall

import (
	"net"
	"net/netip"
	"time"
)

// Packets is a socket for datagrams.
type Packets struct{ *net.UDPConn }

// NewPackets returns c.
func NewPackets(c *net.UDPConn) (*Packets, error) { return &Packets{c}, nil }

// Receive waits for a datagram and reads as much of it as fits b. It does not know when it came.
func (p *Packets) Receive(b []byte) (n int, stamp time.Time, err error) {
	n, _, err = p.ReadFromUDPAddrPort(b)
	return n, stamp, err
}

// Sender sends datagrams to one address.
type Sender struct {
	p  *Packets
	to netip.AddrPort
}

// To returns a Sender to an address.
func (p *Packets) To(addr netip.AddrPort) (*Sender, error) { return &Sender{p, addr}, nil }

// Send sends a datagram. It may wait for a moment if the kernel has no room.
func (s *Sender) Send(b []byte) error {
	_, err := s.p.WriteToUDPAddrPort(b, s.to)
	return err
}

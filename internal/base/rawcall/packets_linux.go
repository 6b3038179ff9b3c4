package rawcall

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Packets is a socket for datagrams. One goroutine at a time may call Receive; anybody may close it
// and make Senders.
type Packets struct {
	*net.UDPConn

	raw syscall.RawConn
	v6  bool // addresses are those of IPv6, or are mapped to it

	// Receive's: made once, because they would take memory.
	try     func(fd uintptr) bool
	header  unix.Msghdr
	buffer  unix.Iovec
	control [64]byte // a time stamp takes 32 at most
	n       int
	err     error
}

// NewPackets returns c with raw calls, and lets the kernel say when datagrams came.
func NewPackets(c *net.UDPConn) (*Packets, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	local, _ := c.LocalAddr().(*net.UDPAddr)
	p := &Packets{UDPConn: c, raw: raw, v6: local != nil && local.IP.To4() == nil}
	err = raw.Control(func(fd uintptr) { // without stamps the times are a little later
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	p.try = func(fd uintptr) bool {
		n, _, err := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&p.header)), 0)
		p.n, p.err = int(n), failure(err)
		return err != syscall.EAGAIN
	}
	return p, err
}

// Receive waits for a datagram and reads as much of it as fits b. stamp is when it came, by the
// wall clock; it is zero if the kernel does not say so.
func (p *Packets) Receive(b []byte) (n int, stamp time.Time, err error) {
	p.buffer.Base = unsafe.SliceData(b)
	p.buffer.SetLen(len(b))
	p.header = unix.Msghdr{Iov: &p.buffer, Control: &p.control[0]}
	p.header.SetIovlen(1)
	p.header.SetControllen(len(p.control))
	if err := p.raw.Read(p.try); err != nil {
		return 0, stamp, err
	}
	if p.err != nil {
		return 0, stamp, os.NewSyscallError("recvmsg", p.err)
	}
	return p.n, stampOf(p.control[:p.header.Controllen]), nil
}

// stampOf is the time stamp of a control message, which is the only one that was asked for.
func stampOf(control []byte) (stamp time.Time) {
	data := unix.CmsgLen(0)
	if strconv.IntSize != 64 || len(control) < data+16 {
		return stamp // elsewhere the form of the stamp depends on the kernel
	}
	number := binary.NativeEndian
	if number.Uint32(control[data-8:]) != unix.SOL_SOCKET ||
		number.Uint32(control[data-4:]) != unix.SCM_TIMESTAMPNS {
		return stamp
	}
	return time.Unix(int64(number.Uint64(control[data:])), int64(number.Uint64(control[data+8:])))
}

// Sender sends datagrams to one address. It is not for concurrent use.
type Sender struct {
	p   *Packets
	to  [unix.SizeofSockaddrInet6]byte
	len int
	try func(fd uintptr) bool
	b   []byte
	err error
}

// To returns a Sender to an address, which has no zone. The socket must know addresses of its kind.
func (p *Packets) To(addr netip.AddrPort) (*Sender, error) {
	s := &Sender{p: p}
	ip := addr.Addr().Unmap()
	binary.BigEndian.PutUint16(s.to[2:], addr.Port())
	switch {
	case !p.v6 && !ip.Is4():
		return nil, fmt.Errorf("%s is no IPv4 address, and the socket at %s sends to those only",
			addr, p.LocalAddr())
	case !p.v6:
		binary.NativeEndian.PutUint16(s.to[:], unix.AF_INET)
		s.len = unix.SizeofSockaddrInet4
		copy(s.to[4:], ip.AsSlice())
	default:
		binary.NativeEndian.PutUint16(s.to[:], unix.AF_INET6)
		s.len = unix.SizeofSockaddrInet6
		mapped := ip.As16()
		copy(s.to[8:], mapped[:])
	}
	s.try = func(fd uintptr) bool {
		_, _, err := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.b))),
			uintptr(len(s.b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL,
			uintptr(unsafe.Pointer(&s.to[0])), uintptr(s.len))
		s.err = failure(err)
		return true
	}
	return s, nil
}

// Send sends a datagram. It never waits: if the kernel has no room that is an error.
func (s *Sender) Send(b []byte) error {
	s.b = b
	err := s.p.raw.Write(s.try)
	s.b = nil
	if err == nil {
		err = os.NewSyscallError("sendto", s.err)
	}
	return err
}

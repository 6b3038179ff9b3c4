package rawio

import (
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Port is one direction of a descriptor. It is safe for concurrent use and allocates
// nothing.
type Port struct {
	mu   sync.Mutex
	wait func(func(uintptr) bool) error // of the descriptor: until it is ready
	name string
	call uintptr // number of the system call
	try  func(uintptr) bool

	buf   []byte
	n     int
	errno syscall.Errno
}

// Reader returns the direction from a descriptor in non-blocking mode.
func Reader(raw syscall.RawConn) *Port { return newPort(raw.Read, "read", syscall.SYS_READ) }

// Writer returns the direction to a descriptor in non-blocking mode.
func Writer(raw syscall.RawConn) *Port { return newPort(raw.Write, "write", syscall.SYS_WRITE) }

func newPort(wait func(func(uintptr) bool) error, name string, call uintptr) *Port {
	p := &Port{wait: wait, name: name, call: call}
	p.try = p.once // made here, so that it is allocated once
	return p
}

// once makes the system call, and reports whether that is the end of waiting.
func (p *Port) once(fd uintptr) bool {
	for {
		start := unsafe.Pointer(unsafe.SliceData(p.buf))
		n, _, errno := syscall.RawSyscall(p.call, fd, uintptr(start), uintptr(len(p.buf)))
		p.n, p.errno = int(n), errno
		if errno != syscall.EINTR {
			return errno != syscall.EAGAIN
		}
	}
}

// transfer makes one call that is not in vain. The error is that of the call, or what the
// descriptor's poller says: a deadline has passed, or it is closed.
func (p *Port) transfer(b []byte) (int, error) {
	p.buf = b
	err := p.wait(p.try)
	p.buf = nil
	if err != nil {
		return 0, err
	}
	if p.errno != 0 {
		return 0, os.NewSyscallError(p.name, p.errno)
	}
	return p.n, nil
}

// Read is that of io.Reader.
func (p *Port) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.transfer(b)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write is that of io.Writer.
func (p *Port) Write(b []byte) (written int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for written < len(b) && err == nil {
		var n int
		n, err = p.transfer(b[written:])
		written += n
	}
	return written, err
}

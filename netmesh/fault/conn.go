package fault

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	maxLate   = 1024                   // frames that may be late at a time; more block the writer
	maxFrame  = 1 << 20                // above the mesh's limit
	flushTime = 500 * time.Millisecond // for late frames to leave before the end of the stream
)

var errLost = errors.New("the fault layer lost the last frame")

// conn is a connection with the faults in it. One goroutine writes the frames that are late.
type conn struct {
	net.Conn
	f     *Faults
	peer  elector.NodeID
	in    io.Reader
	frame []byte // the part of the newest frame that was not read yet
	buf   []byte // holds that frame
	reset atomic.Bool

	late    chan lateFrame
	waiting atomic.Int32  // frames that are late
	lost    bool          // the newest frame to the peer was lost
	flush   chan struct{} // closed by CloseWrite
	closing sync.Once
	closed  chan struct{}
	written chan struct{} // closed when nothing is written any more
	err     error         // of the last write; valid once written is closed

	mu    sync.Mutex
	limit time.Time     // of reads
	moved chan struct{} // limit has changed
}

type lateFrame struct {
	due   time.Time
	frame []byte
}

// Wrap implements netmesh.FaultLayer.
func (f *Faults) Wrap(peer elector.NodeID, inner net.Conn, in io.Reader) net.Conn {
	c := &conn{
		Conn: inner, f: f, peer: peer, in: in, late: make(chan lateFrame, maxLate),
		flush: make(chan struct{}), closed: make(chan struct{}), written: make(chan struct{}),
		moved: make(chan struct{}, 1),
	}
	f.mu.Lock()
	f.conns[c] = struct{}{}
	f.mu.Unlock()
	go c.write()
	return c
}

// Read reads whole frames, so that a whole one can be lost.
func (c *conn) Read(b []byte) (int, error) {
	for len(c.frame) == 0 {
		if err := c.next(); err != nil {
			return 0, c.hear(err)
		}
		if c.f.of(c.peer).cut&In != 0 {
			c.frame = nil
		}
	}
	n := copy(b, c.frame)
	c.frame = c.frame[n:]
	return n, nil
}

func (c *conn) next() error {
	var length [4]byte
	if _, err := io.ReadFull(c.in, length[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > maxFrame {
		size = 0 // the mesh ends the connection as soon as it reads the length
	}
	c.buf = append(c.buf[:0], length[:]...)
	c.frame = slices.Grow(c.buf, int(size))[:4+size]
	c.buf = c.frame
	_, err := io.ReadFull(c.in, c.frame[4:])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// hear waits while the peer's end of the connection is cut off: the end of the connection shows
// only once the cut, or the time for reading, is over.
func (c *conn) hear(err error) error {
	for {
		c.f.mu.Lock()
		changed := c.f.changed
		c.f.mu.Unlock()
		switch {
		case c.reset.Load():
			return &net.OpError{Op: "read", Net: "fault", Err: syscall.ECONNRESET}
		case c.f.of(c.peer).cut&In == 0, errors.Is(err, net.ErrClosed),
			errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
		var expired <-chan time.Time
		c.mu.Lock()
		if !c.limit.IsZero() {
			expired = time.After(time.Until(c.limit))
		}
		c.mu.Unlock()
		select {
		case <-expired:
			return os.ErrDeadlineExceeded
		case <-c.closed:
			return net.ErrClosed
		case <-changed:
		case <-c.moved:
		}
	}
}

// Write takes one frame. A frame that is not late leaves at once, as without a fault layer. The
// error may be that of an earlier frame.
func (c *conn) Write(frame []byte) (int, error) {
	x := c.f.of(c.peer)
	if c.lost = x.lost(); c.lost {
		return len(frame), nil
	}
	delay := x.late()
	if delay <= 0 && c.waiting.Load() == 0 {
		return c.Conn.Write(frame)
	}
	c.waiting.Add(1)
	select {
	case c.late <- lateFrame{time.Now().Add(delay), bytes.Clone(frame)}:
		return len(frame), nil
	case <-c.written:
		return 0, c.err
	}
}

// write writes every frame when it is due, until the first error.
func (c *conn) write() {
	defer close(c.written)
	for flush, end := c.flush, (<-chan time.Time)(nil); c.err == nil; {
		select {
		case late, more := <-c.late:
			if !more {
				return
			}
			wait := time.Until(late.due)
			for due := time.After(wait); late.frame != nil && c.err == nil; {
				select {
				case <-due:
					_, c.err = c.Conn.Write(late.frame)
					late.frame = nil
					c.waiting.Add(-1)
				case <-flush:
					flush, end = nil, time.After(flushTime)
				case <-end:
					c.err = errLost
				case <-c.closed:
					c.err = net.ErrClosed
				}
			}
		case <-c.closed:
			c.err = net.ErrClosed
		}
	}
}

// CloseWrite ends the stream after the last frame, unless that was lost. No Write may run at the
// same time or later.
func (c *conn) CloseWrite() error {
	close(c.flush)
	close(c.late)
	<-c.written
	if c.err == nil && c.lost {
		return errLost
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.err == nil {
		return half.CloseWrite()
	}
	return c.err
}

// Close closes the connection; what is late is lost.
func (c *conn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	c.f.mu.Lock()
	delete(c.f.conns, c)
	c.f.mu.Unlock()
	return c.Conn.Close()
}

// SetLinger with 0 makes Close reset the connection.
func (c *conn) SetLinger(sec int) error {
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// SetReadDeadline sets when reads fail. The mesh does not call SetDeadline.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.limit = t
	c.mu.Unlock()
	select {
	case c.moved <- struct{}{}:
	default:
	}
	return c.Conn.SetReadDeadline(t)
}

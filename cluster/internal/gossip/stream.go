package gossip

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// A stream begins with a hello: helloMagic, the length of the dialer's name, the
// name. Without it an accepted stream could not be told apart by peer, because
// its source port means nothing, and a fault could not be applied to it.
const (
	helloMagic   = 0xB6
	helloTimeout = 3 * time.Second
	// maxGreets bounds the accepted streams that have not said hello yet, so that
	// a port scanner cannot use up the process.
	maxGreets = 64
)

func sayHello(conn net.Conn, node elector.NodeID, timeout time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	hello := append([]byte{helloMagic, byte(len(node))}, node...)
	_, err := conn.Write(hello)
	return err
}

func readHello(conn net.Conn) (elector.NodeID, error) {
	if err := conn.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return "", err
	}
	var head [2]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return "", fmt.Errorf("read hello: %w", err)
	}
	if head[0] != helloMagic {
		return "", fmt.Errorf("stream begins with byte %#x, not with a hello (%#x)", head[0], helloMagic)
	}
	node := make([]byte, head[1])
	if _, err := io.ReadFull(conn, node); err != nil {
		return "", fmt.Errorf("read name in hello: %w", err)
	}
	return elector.NodeID(node), conn.SetDeadline(time.Time{})
}

// connSet knows the open streams, so that a shutdown does not wait for their
// timeouts. The zero value is ready.
type connSet struct {
	mu     sync.Mutex
	open   map[*trackedConn]struct{}
	closed bool
}

// trackedConn takes itself out of its set when closed.
type trackedConn struct {
	net.Conn
	set *connSet
}

// Close closes the stream.
func (c *trackedConn) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.Conn.Close()
}

// add takes conn in, or closes it if the set is closed already.
func (s *connSet) add(conn net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	if s.open == nil {
		s.open = map[*trackedConn]struct{}{}
	}
	c := &trackedConn{conn, s}
	s.open[c] = struct{}{}
	return c, nil
}

func (s *connSet) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		_ = c.Conn.Close()
	}
	s.open = nil
}

package netmesh

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// handshakes says how long this process waits for the handshakes that it begins with one peer. A
// peer may have so little processor time that a handshake takes longer than the election would
// wait; to break off and begin again would use up that time. So the limit doubles with each
// handshake that was too slow, and then follows what handshakes take. The pause between redials is
// in proportion. The methods are safe for concurrent use.
type handshakes struct {
	least, most time.Duration
	now         atomic.Int64 // 0: least
}

func (s *handshakes) limit() time.Duration { return max(s.least, time.Duration(s.now.Load())) }

// learn takes note of how a handshake ended.
func (s *handshakes) learn(took time.Duration, err error) {
	switch {
	case err == nil:
		s.now.Store(int64(min(4*took, s.most)))
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.now.Store(int64(min(2*s.limit(), s.most)))
	}
}

// introduce makes a handshake with the peer on a connection that was dialed, up to the Welcome.
func (p *peer) introduce(
	conn net.Conn, plain bool, mine *hello,
) (h *handshake, theirs *hello, err error) {
	h = newHandshake(conn, p.handshakes.limit())
	h.plain = plain
	began := time.Now()
	theirs, err = p.m.introduce(h, mine)
	p.handshakes.learn(time.Since(began), err)
	return h, theirs, err
}

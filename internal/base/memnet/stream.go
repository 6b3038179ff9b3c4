package memnet

import (
	"bytes"
	"net"
	"os"
	"sync"
	"time"
)

// capacity is how much a stream holds before its writer blocks, in bytes.
const capacity = 256 << 10

// stream is one direction of a connection: what one end writes the other reads.
type stream struct {
	mu             sync.Mutex
	change         *sync.Cond
	data           []byte
	flying         int   // bytes that are on their way
	readErr        error // for the reader, after the data
	writeErr       error // for the writer, at once
	shutDown       bool  // the reader has closed
	reader, writer deadline
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.reader.held():
			continue // things may have changed
		case s.reader.passed():
			return 0, os.ErrDeadlineExceeded
		case len(s.data) > 0:
			n := copy(b, s.data)
			s.data = s.data[n:]
			s.change.Broadcast()
			return n, nil
		case s.readErr != nil:
			return 0, s.readErr
		case len(b) == 0:
			return 0, nil
		}
		s.change.Wait()
	}
}

// accept takes as much of b as there is room for, at least one byte.
func (s *stream) accept(b []byte) (chunk []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch room := capacity - len(s.data) - s.flying; {
		case s.writer.held():
			continue
		case s.writeErr != nil:
			return nil, s.writeErr
		case s.writer.passed():
			return nil, os.ErrDeadlineExceeded
		case room > 0:
			chunk = bytes.Clone(b[:min(room, len(b))])
			s.flying += len(chunk)
			return chunk, nil
		}
		s.change.Wait()
	}
}

// deliver reports false if nobody will ever read what has arrived.
func (s *stream) deliver(chunk []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying -= len(chunk)
	if s.shutDown {
		return false
	}
	if s.readErr == nil {
		s.data = append(s.data, chunk...)
	}
	s.change.Broadcast()
	return true
}

// end makes reads fail after the data, or writes at once. What is set stays. A reset
// loses the data.
func (s *stream) end(readErr, writeErr error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readErr == nil {
		s.readErr = readErr
		if readErr == errReset {
			s.data = nil
		}
	}
	if s.writeErr == nil {
		s.writeErr = writeErr
	}
	s.change.Broadcast()
}

// shut is the reader's close: nothing can be read any more. It reports whether
// there was something.
func (s *stream) shut() (unread bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unread = len(s.data) > 0
	s.data, s.readErr, s.shutDown = nil, net.ErrClosed, true
	s.change.Broadcast()
	return unread
}

// deadline is that of a stream's reader or writer. Guarded by stream.mu.
type deadline struct {
	s     *stream
	host  *Host // whose process it is
	at    time.Time
	timer *time.Timer
}

// held waits while the process is stopped, without the lock, and reports whether
// it had to.
func (d *deadline) held() bool {
	if d.host.gate() == nil {
		return false
	}
	d.s.mu.Unlock()
	defer d.s.mu.Lock()
	d.host.pass()
	return true
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// set arms the deadline; the zero time disarms it.
func (d *deadline) set(t time.Time) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.at = t; !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			d.s.mu.Lock()
			defer d.s.mu.Unlock()
			d.s.change.Broadcast()
		})
	}
	d.s.change.Broadcast()
}

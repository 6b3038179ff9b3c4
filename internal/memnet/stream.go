package memnet

import (
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
	readErr        error // for the reader, after the data
	writeErr       error // for the writer, at once
	reader, writer deadline
}

func newStream() *stream {
	s := &stream{}
	s.change = sync.NewCond(&s.mu)
	s.reader.s, s.writer.s = s, s
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.reader.passed:
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

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch room := capacity - len(s.data); {
		case s.writeErr != nil:
			return n, s.writeErr
		case s.writer.passed:
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		case room > 0:
			some := min(room, len(b))
			s.data = append(s.data, b[:some]...)
			b, n = b[some:], n+some
			s.change.Broadcast()
			continue
		}
		s.change.Wait()
	}
}

// end makes reads fail after the data and writes at once. What is set stays.
func (s *stream) end(readErr, writeErr error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(readErr, writeErr)
}

// abort makes both fail at once with err; the data is lost.
func (s *stream) abort(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = nil
	s.fail(err, err)
}

// shut is the reader's close: nothing can be read any more, and writing makes no sense.
func (s *stream) shut(readErr, writeErr error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data, s.readErr = nil, readErr
	s.fail(readErr, writeErr)
}

func (s *stream) fail(readErr, writeErr error) {
	if s.readErr == nil {
		s.readErr = readErr
	}
	if s.writeErr == nil {
		s.writeErr = writeErr
	}
	s.change.Broadcast()
}

func (s *stream) unread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.data) > 0
}

// deadline is that of a stream's reader or writer. Guarded by stream.mu.
type deadline struct {
	s      *stream
	timer  *time.Timer
	passed bool
	round  uint64
}

// set arms the deadline; the zero time disarms it.
func (d *deadline) set(t time.Time) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.round++
	d.passed = !t.IsZero() && !t.After(time.Now())
	if d.passed {
		d.s.change.Broadcast()
	} else if !t.IsZero() {
		armed := d.round
		d.timer = time.AfterFunc(time.Until(t), func() { d.pass(armed) })
	}
}

func (d *deadline) pass(armed uint64) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.round == armed {
		d.passed = true
		d.s.change.Broadcast()
	}
}

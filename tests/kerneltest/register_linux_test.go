package kerneltest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

const registerPort = 7500

// The register keeps the token of the newest write, behind a fence. A client sends a line, the
// token of a write or "read", and gets the newest token. The register itself records whether it
// admitted a write, since the answer does not always reach the writer.

// serveRegister serves until the test ends, and reads the register now and then.
func (r *rig) serveRegister() {
	at := fmt.Sprintf("%s:%d", r.address(254), registerPort)
	l, err := net.Listen("tcp", at)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { l.Close() })
	var fence lsn.Fence
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.answerAll(conn, &fence)
		}
	}()
	for _, v := range r.voters {
		v.cfg.Register = at
	}
	done := make(chan struct{})
	r.t.Cleanup(func() { close(done) })
	go r.readAll(at, done)
}

func (r *rig) answerAll(conn net.Conn, fence *lsn.Fence) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var t lsn.LSN
		if _, err := fmt.Sscanf(lines.Text(), "%d.%d", &t.Term, &t.Counter); err == nil {
			r.mu.Lock() // so that no read of this token is recorded before
			stale := fence.AdmitNew(t) != nil
			at := now()
			r.records = append(r.records, record{Kind: wrote, At: at, To: at, First: t, Refused: stale})
			r.mu.Unlock()
		}
		if _, err := fmt.Fprintln(conn, fence.Newest()); err != nil {
			return
		}
	}
}

// readAll reads the register again and again.
func (r *rig) readAll(at string, done <-chan struct{}) {
	var c register
	for {
		select {
		case <-done:
			return
		case <-time.After(20 * time.Millisecond):
		}
		rec := record{Kind: read, From: now()}
		said, err := c.ask(at, read)
		if rec.To = now(); err != nil {
			continue
		}
		if _, err = fmt.Sscanf(said, "%d.%d", &rec.First.Term, &rec.First.Counter); err == nil {
			rec.At = rec.To
			r.mu.Lock()
			r.records = append(r.records, rec)
			r.mu.Unlock()
		}
	}
}

// register is a connection to the register, dialed when it is needed.
type register struct {
	using sync.Mutex
	conn  net.Conn
	in    *bufio.Reader
}

// ask sends a line and returns the answer.
func (c *register) ask(at, line string) (answer string, err error) {
	c.using.Lock()
	defer c.using.Unlock()
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", at, time.Second); err != nil {
			return "", err
		}
		c.in = bufio.NewReader(c.conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(time.Second))
	if _, err = io.WriteString(c.conn, line+"\n"); err == nil {
		answer, err = c.in.ReadString('\n')
	}
	if err != nil {
		c.conn.Close()
		c.conn = nil
	}
	return answer, err
}

// writeAll writes with new tokens as long as the leadership issues them. It delays some writes
// until another node may lead, so that only the fence can refuse them.
func (s *speaker) writeAll(l *cluster.Leadership) {
	for {
		began := now()
		t, err := l.NextLSN()
		if err != nil {
			return
		}
		s.say(record{Kind: token, From: began, To: now(), First: t})
		if rand.IntN(50) == 0 {
			time.AfterFunc(time.Duration(rand.Int64N(int64(8*time.Second))), func() { s.write(t) })
		} else {
			s.write(t)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *speaker) write(t lsn.LSN) {
	s.say(record{Kind: writes, From: now(), First: t})
	_, _ = s.ask(s.cfg.Register, t.String()) // the register tells what became of it
}

package netmesh

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// greeting is a connection during its handshake.
type greeting struct {
	conn   net.Conn
	frames *frameReader
	dec    *decoder
	enc    *encoder
}

func newGreeting(conn net.Conn, timeout time.Duration) *greeting {
	_ = conn.SetDeadline(time.Now().Add(timeout)) // fails on a dead connection, as the next read does
	return &greeting{conn: conn, frames: newFrameReader(conn, maxGreeting), dec: newDecoder(), enc: newEncoder()}
}

func (g *greeting) send(kind frameKind, body any) error {
	frame, err := g.enc.encode(kind, body)
	if err != nil {
		return err
	}
	_, err = g.conn.Write(frame)
	return err
}

// expect reads the next frame, which must be of that kind, or a Refuse, which
// becomes the error.
func (g *greeting) expect(want frameKind, into any) error {
	kind, body, err := g.frames.next()
	switch {
	case err != nil:
		return err
	case kind == want:
		return g.dec.one(body, into)
	case kind == frameRefuse:
		var f farewell
		if err := g.dec.one(body, &f); err != nil {
			return err
		}
		return f.refusal()
	}
	return refuse(ReasonGarbage, "frame kind %d in a handshake, want %d", kind, want)
}

// refuse tells the peer why there will be no link.
func (g *greeting) refuse(r *refusal) { g.part(frameRefuse, r.farewell()) }

// leave says goodbye to a dialer that may have the link up by now, for which an orderly
// end without goodbye would look like this process's death.
func (g *greeting) leave(cause error) {
	var broke *refusal
	if errors.As(cause, &broke) && !broke.byPeer {
		g.part(frameGoodbye, broke.farewell())
		return
	}
	reset(g.conn)
}

// part says a last thing, and closes so that the peer has a chance to read it.
func (g *greeting) part(kind frameKind, body any) {
	if err := g.send(kind, body); err != nil {
		reset(g.conn)
		return
	}
	if err := closeWrite(g.conn); err == nil {
		// Closing while unread data waits would reset the connection and take
		// what was said with it.
		_ = g.conn.SetReadDeadline(time.Now().Add(farewellTime))
		_, _ = io.CopyN(io.Discard, g.conn, maxGreeting)
	}
	_ = g.conn.Close() // what was said is out, or this end never was a link: it proves nothing
}

// reasonOf says what a failed handshake counts as.
func reasonOf(err error) Reason {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ReasonGarbage // a truncated frame
	case evidenceOf(err) == elector.EvidenceTimeout:
		return ReasonSilent
	}
	return ReasonVanished
}

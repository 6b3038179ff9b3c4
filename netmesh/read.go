package netmesh

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// goodbyeError is a peer's goodbye.
type goodbyeError struct{ refusal }

// Error says why the peer left.
func (g *goodbyeError) Error() string { return fmt.Sprintf("goodbye (%s): %s", g.Reason, g.Text) }

// receive reads until the link ends and returns why.
func (l *link) receive() error {
	for {
		kind, body, err := l.frames.next()
		if l.deaf() {
			if err != nil {
				return l.silence()
			}
			continue
		}
		if err == nil {
			l.p.traffic.framesIn.Add(1)
			l.p.traffic.bytesIn.Add(uint64(frameHeader + len(body)))
			err = l.handle(kind, body)
			l.extend() // not before: time that the handler takes is not the peer's silence
		}
		if err != nil {
			l.blame(err)
			return err
		}
	}
}

// handle acts on one frame.
func (l *link) handle(kind frameKind, body []byte) error {
	switch kind {
	case frameBatch:
		return l.deliver(body)
	case framePing, framePong:
		var p ping
		if err := l.dec.one(body, &p); err != nil {
			return err
		}
		return l.pinged(kind, &p)
	case frameFacts:
		var f facts
		if err := l.dec.one(body, &f); err != nil {
			return err
		}
		return l.learn(&f)
	case frameGoodbye:
		var f farewell
		if err := l.dec.one(body, &f); err != nil {
			return err
		}
		return &goodbyeError{*f.refusal()}
	}
	return refuse(ReasonGarbage, "frame kind %d on an established link", kind)
}

func (l *link) pinged(kind frameKind, p *ping) error {
	now := l.m.cfg.Clock.Now()
	if kind == framePing {
		select {
		case l.pongs <- ping{Number: p.Number, Received: int64(now)}:
		default: // a flood of pings is not worth a queue
		}
		return nil
	}
	sent, ok := l.meter.pong(p.Number, time.Now())
	if !ok {
		return nil // nobody asked
	}
	l.answer(p.Number)
	if l.info.Version >= factsVersion {
		return l.timed(sent, now, p)
	}
	return nil
}

// deliver hands a batch to the handler. The turn is held for the whole of it:
// a handler that blocks holds up this link alone. What comes in on a connection
// that was replaced counts to its last frame: the peer may have sent it before it
// knew. On one that is ended for another reason nothing counts any more.
func (l *link) deliver(body []byte) error {
	l.p.takeTurn()
	defer l.p.leaveTurn()
	heard, replaced := l.p.hears(l), !l.current()
	return l.dec.batch(body, func(group string, msg elector.Message) {
		if heard && (replaced || !l.ending()) {
			l.m.handler.Received(l.p.node, group, msg)
		}
	})
}

// blame counts and logs a peer that broke the rules.
func (l *link) blame(err error) {
	var broke *refusal
	if errors.As(err, &broke) {
		l.m.stats.count(broke.Reason)
		l.m.log.warn(broke.Reason.String(), string(l.p.node), "closing the link", "peer", l.p.node,
			"remote", l.info.Remote, "cause", broke.Text)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !l.ending() {
		l.m.stats.count(ReasonTimeout)
	}
}

// deaf reports whether the fault layer swallows what the peer sends.
func (l *link) deaf() bool {
	f := l.m.cfg.Faults
	return f != nil && f.cut(l.info.Node, In)
}

// silence stands for the end of a connection that a cut network does not show:
// the link ends when it would have ended if nothing had come.
func (l *link) silence() error {
	l.mu.Lock()
	rest := time.Until(l.limit)
	l.mu.Unlock()
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.stop:
	}
	return fmt.Errorf("cut off: %w", os.ErrDeadlineExceeded)
}

package netmesh

import (
	"errors"
	"os"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// read reads until the link ends and returns why.
func (l *link) read() error {
	for {
		kind, body, err := l.frames.next()
		if err == nil {
			l.p.traffic.framesIn.Add(1)
			l.p.traffic.bytesIn.Add(uint64(frameHeader + len(body)))
			l.life.asked.Store(0)
			l.life.busy.Store(true) // the time that the handler takes is not the peer's silence
			err = l.handle(kind, body)
			l.life.asked.Store(0)
			l.life.busy.Store(false)
		}
		if err != nil {
			l.countViolation(err)
			return err
		}
	}
}

// handle acts on one frame.
func (l *link) handle(kind frameKind, body []byte) error {
	switch kind {
	case frameBatch, frameRecords:
		return l.deliver(kind, body)
	case frameNote:
		return l.takeNote(body)
	case frameChanges, frameBeat, frameAck:
		return l.takePairs(kind, body)
	case framePing, framePong:
		var p ping
		if err := l.dec.one(body, &p); err != nil {
			return err
		}
		if kind == framePong {
			return l.ponged(&p)
		}
		select {
		case l.pongs <- ping{Number: p.Number, Received: int64(l.m.cfg.Clock.Now())}:
		default: // a flood of pings is not worth a queue
		}
		return nil
	case frameFacts:
		var f Facts
		if err := l.dec.one(body, &f); err != nil {
			return err
		}
		return l.learn(&f)
	case frameGoodbye:
		var g goodbye
		if err := l.dec.one(body, &g); err != nil {
			return err
		}
		said := g.refusal()
		said.endsLink = true
		return said
	}
	return refuse(ReasonGarbage, "frame kind %d on an established link", kind)
}

// deliver hands a batch to the handler. It holds the peer's callback lock, so a handler that
// blocks holds up this link alone. On a connection that was replaced everything counts to its last
// frame, since the peer may have sent it before it knew. On one that ended for another reason
// nothing counts any more.
func (l *link) deliver(kind frameKind, body []byte) error {
	l.p.callbacks.lock()
	defer l.p.callbacks.unlock()
	heard, replaced := l.p.sameProcess(l), !l.current()
	each := func(group string, msg elector.Message) {
		if heard && (replaced || !isClosed(l.stop)) {
			l.m.handler.Received(l.p.node, group, msg)
		}
	}
	if kind == frameRecords {
		return l.dec.records(body, each)
	}
	return l.dec.batch(body, each)
}

// ponged takes the answer to a ping.
func (l *link) ponged(p *ping) error {
	back := l.m.cfg.Clock.Now()
	sent, ok := l.meter.pong(p.Number, time.Now())
	if !ok {
		return nil // nobody asked
	}
	l.answer(p.Number)
	l.answered.Store(p.Number)
	l.noted.wake()
	if p.Received < 0 || p.Sent < p.Received {
		return refuse(ReasonGarbage, "ping received at %d and answered at %d", p.Received, p.Sent)
	}
	if l.m.observer == nil {
		return nil
	}
	l.p.callbacks.lock()
	defer l.p.callbacks.unlock()
	if l.current() {
		l.m.observer.Answered(l.p.node, Ping{
			Sent: sent, Back: back, Received: time.Duration(p.Received), Answered: time.Duration(p.Sent),
		})
	}
	return nil
}

// countViolation counts and logs a peer that broke the rules.
func (l *link) countViolation(err error) {
	var broke *refusal
	if errors.As(err, &broke) && !broke.endsLink {
		l.m.countReason(broke.Reason)
		l.m.log.warn(broke.Reason.String(), string(l.p.node), "closing the link", "peer", l.p.node,
			"remote", l.info.Remote, "cause", broke.Text)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !isClosed(l.stop) {
		l.m.countReason(reasonTimeout)
	}
}

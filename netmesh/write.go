package netmesh

import (
	"errors"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// write sends what waits until the link ends, and says goodbye.
func (l *link) write() {
	defer close(l.written)
	ticker := time.NewTicker(l.m.cfg.PingInterval)
	defer ticker.Stop()
	var expired <-chan time.Time
	retired := l.retired
	err := l.sendFacts()
	if err == nil {
		err = l.sendPing()
	}
	for err == nil {
		select {
		case <-l.stop:
			l.farewell()
			return
		case <-l.ready:
			err = l.sendBatch()
		case pong := <-l.pongs:
			err = l.sendPong(pong)
		case <-l.news:
			err = l.sendFacts()
		case <-ticker.C:
			err = l.sendPing()
		case <-l.probe:
			err = l.sendPing()
		case <-retired:
			retired, expired = nil, time.After(l.m.cfg.HandshakeTimeout)
		case <-expired:
			l.end(elector.EvidenceLocal, refuse(ReasonSuperseded, "another connection to %s is kept", l.node))
		}
	}
	l.failed(err)
	<-l.stop
	_ = l.finishLine() // nothing more can get out
}

// sendBatch sends all that waits for the peer in as few frames as hold it,
// usually one. Only the link itself may take from the queue.
func (l *link) sendBatch() error {
	l.m.mu.RLock()
	current := l.p.link == l
	l.m.mu.RUnlock()
	if !current {
		return nil
	}
	l.spare = l.p.queue.swap(l.spare)
	for rest := l.spare; len(rest) > 0; {
		n, frame, err := l.enc.batch(rest, l.m.cfg.MaxFrame)
		if err != nil {
			return err
		}
		if err := l.send(frame); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (l *link) sendPing() error {
	return l.sendValue(framePing, &ping{Number: l.meter.next(time.Now(), l.m.cfg.Clock.Now())})
}

func (l *link) sendPong(pong ping) error {
	pong.Sent, pong.Wall = int64(l.m.cfg.Clock.Now()), time.Now().UnixNano()
	return l.sendValue(framePong, &pong)
}

// sendFacts tells the peer what there is to tell, if it listens to that.
func (l *link) sendFacts() error {
	if l.info.Version < factsVersion {
		return nil
	}
	return l.sendValue(frameFacts, l.facts())
}

func (l *link) sendValue(kind frameKind, value any) error {
	frame, err := l.enc.encode(kind, value)
	if err != nil {
		return err
	}
	return l.send(frame)
}

// join tells the acceptor that the link is up here. An error shows in the first read.
func (l *link) join() {
	frame, err := l.enc.encode(frameJoin, &ping{})
	if err == nil {
		_, err = l.conn.Write(frame)
	}
	if err != nil {
		l.m.log.Debug("join not sent", "peer", l.info.Node, "cause", err)
	}
}

// send writes one frame, through the fault layer if there is one.
func (l *link) send(frame []byte) error {
	if l.line != nil {
		return l.line.push(frame)
	}
	return l.put(frame)
}

// put writes one frame to the connection.
func (l *link) put(frame []byte) error {
	l.mu.Lock()
	if !l.hurried {
		limit := l.m.cfg.IdleTimeout
		if l.ended {
			limit = farewellTime // from now on: the time since the end may be used up already
		}
		_ = l.conn.SetWriteDeadline(time.Now().Add(limit)) // fails on a dead connection, as the write does
	}
	l.mu.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	if _, err := l.conn.Write(frame); err != nil {
		err = fmt.Errorf("write %d bytes to %s: %w", len(frame), l.info.Node, err)
		l.failed(err)
		return err
	}
	l.p.traffic.framesOut.Add(1)
	l.p.traffic.bytesOut.Add(uint64(len(frame)))
	return nil
}

// farewell sends what still waits, says goodbye, then ends the stream. If the
// goodbye does not get out the connection will be reset: an end of stream
// without it would be taken for the death of this process.
func (l *link) farewell() {
	err := l.sendBatch()
	if err == nil {
		err = l.sayGoodbye()
	}
	if lineErr := l.finishLine(); err == nil {
		err = lineErr
	}
	if err == nil {
		err = closeWrite(l.conn)
	}
	if err != nil {
		l.failed(err)
		return
	}
	l.hasten()
}

func (l *link) sayGoodbye() error {
	l.mu.Lock()
	cause := l.cause
	l.mu.Unlock()
	var why *refusal
	if !errors.As(cause, &why) {
		why = refuse(ReasonTimeout, "%v", cause)
	}
	frame, err := l.enc.encode(frameGoodbye, why.farewell())
	if err != nil {
		return err
	}
	return l.send(frame)
}

// finishLine waits until the fault layer has let everything out.
func (l *link) finishLine() error {
	if l.line == nil {
		return nil
	}
	return l.line.finish()
}

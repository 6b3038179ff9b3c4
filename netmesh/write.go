package netmesh

import (
	"errors"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// flushFrom is from how many bytes on frames are written before others join them.
const flushFrom = 64 << 10

// write sends what waits until the link ends, and says goodbye. Frames that wait together are
// written at once: a call of the kernel, and a reader that wakes, take longer than most frames.
func (l *link) write() {
	defer close(l.written)
	var expired <-chan time.Time
	retired := l.retired
	err := l.sendPing()
	for err == nil {
		if err = l.flush(); err != nil {
			break
		}
		select { // a heartbeat does not wait for pings
		case <-l.ready:
			err = l.sendWaiting()
			continue
		default:
		}
		select {
		case <-l.stop:
			l.sayGoodbye()
			return
		case <-l.ready:
			err = l.sendWaiting()
		case <-l.noted:
			err = l.sendWaiting()
		case pong := <-l.pongs:
			pong.Sent, pong.Wall = int64(l.m.cfg.Clock.Now()), time.Now().UnixNano()
			if err = l.send(framePong, &pong); err == nil && l.pingsSoon() {
				err = l.pingOrEnd()
			}
		case <-l.pingNow:
			err = l.pingOrEnd()
		case <-retired:
			retired, expired = nil, time.After(l.m.cfg.times.handshake)
		case <-expired:
			l.end(elector.EvidenceLocal, l.superseded())
		}
	}
	l.failed(err, goodbyeTime)
	<-l.stop
}

// sendWaiting sends the messages that wait, and notes behind them.
func (l *link) sendWaiting() error {
	changes, err := l.sendPairs()
	if err == nil {
		err = l.sendBatch()
	}
	if err == nil {
		err = sendAll(l, changes, l.enc.changes)
	}
	if err == nil {
		err = l.sendNotes()
	}
	return err
}

// sendBatch sends all that waits for the peer in as few frames as hold it,
// usually one. Only the link itself may take from the queue.
func (l *link) sendBatch() error {
	if !l.current() {
		return nil
	}
	l.spare = l.p.queue.swap(l.spare)
	return sendAll(l, l.spare, l.enc.batch)
}

// sendAll sends all in as few frames as hold them. encode makes the next one, of so many of them.
func sendAll[T any](l *link, rest []T, encode func([]T, int) (int, []byte, error)) error {
	for len(rest) > 0 {
		n, frame, err := encode(rest, maxFrame)
		if err != nil {
			return err
		}
		if err := l.put(frame); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// pingsSoon reports whether half of the time until the next ping has passed. The ping goes along
// with an answer then: two packets less. Over a longer round trip the two ends would ping each
// other too often.
func (l *link) pingsSoon() bool {
	half := l.pingEvery(false) / 2
	roundTrip, _ := l.meter.read()
	return l.m.age()-l.life.pinged.Load() >= half && int64(roundTrip) < half
}

// pingOrEnd pings, unless the link must end by the newest credentials.
func (l *link) pingOrEnd() error {
	if refused := l.overdue(); refused != nil {
		l.end(elector.EvidenceLocal, refused)
		return nil
	}
	return l.sendPing()
}

// sendPing also tells what was not told yet.
func (l *link) sendPing() error {
	if facts := l.m.facts.Load(); facts != l.told {
		if err := l.send(frameFacts, facts); err != nil {
			return err
		}
		l.told = facts
	}
	l.life.pinged.Store(l.m.age())
	return l.send(framePing, &ping{Number: l.meter.next(time.Now(), l.m.cfg.Clock.Now())})
}

func (l *link) send(kind frameKind, value any) error {
	frame, err := l.enc.encode(kind, value)
	if err != nil {
		return err
	}
	return l.put(frame)
}

// put adds a frame to those that flush writes.
func (l *link) put(frame []byte) error {
	// A pong asks for no answer, or two peers would ping each other for ever.
	l.asks = l.asks || frameKind(frame[frameHeader-1]) != framePong
	l.out = append(l.out, frame...)
	l.p.traffic.framesOut.Add(1)
	if len(l.out) < flushFrom {
		return nil
	}
	return l.flush()
}

// flush writes the frames of put to the connection.
func (l *link) flush() error {
	if len(l.out) == 0 {
		return nil
	}
	l.mu.Lock()
	if l.ended && !l.endsSoon {
		// It counts from now on: the time since the end may be used up. Fails as the write does.
		_ = l.conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
	}
	l.mu.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	l.life.begin(l.m.age(), l.asks)
	_, err := l.conn.Write(l.out)
	l.life.writing.Store(0)
	if err != nil {
		err = fmt.Errorf("write %d bytes to %s: %w", len(l.out), l.info.Node, err)
		l.failed(err, goodbyeTime)
		return err
	}
	l.p.traffic.bytesOut.Add(uint64(len(l.out)))
	l.out, l.asks = l.out[:0], false
	return nil
}

// sayGoodbye sends what still waits, says goodbye, then ends the stream. If the
// goodbye does not get out the connection will be reset: an end of stream
// without it would be taken for the death of this process.
func (l *link) sayGoodbye() {
	l.mu.Lock()
	cause := l.cause
	l.mu.Unlock()
	var why *refusal
	if !errors.As(cause, &why) {
		why = refuse(reasonTimeout, "%v", cause)
	}
	err := l.sendBatch()
	if err == nil {
		err = l.send(frameGoodbye, why.goodbye())
	}
	if err == nil {
		err = l.flush()
	}
	if err == nil {
		err = closeWrite(l.conn)
	}
	if err != nil {
		l.failed(err, goodbyeTime)
		return
	}
	l.endIn(goodbyeTime)
}

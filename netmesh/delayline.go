package netmesh

import (
	"bytes"
	"errors"
	"time"
)

// lineLength is how many frames may be late at a time; more block the writer.
const lineLength = 1024

var errLostGoodbye = errors.New("the fault layer lost the goodbye")

// delayLine is the fault layer below a link's writer: it loses frames, or lets
// them out late and in order.
type delayLine struct {
	l     *link
	in    chan delayed
	done  chan struct{}
	last  bool // the newest frame was not lost
	wrote error
}

type delayed struct {
	due   time.Time
	frame []byte
}

func newDelayLine(l *link) *delayLine {
	d := &delayLine{l: l, in: make(chan delayed, lineLength), done: make(chan struct{})}
	go d.run()
	return d
}

// push takes a frame. An error of an earlier one is returned if there was any.
func (d *delayLine) push(frame []byte) error {
	lost, delay := d.l.m.cfg.Faults.outgoing(d.l.info.Node)
	d.last = !lost
	if lost {
		return nil
	}
	select {
	case d.in <- delayed{due: time.Now().Add(delay), frame: bytes.Clone(frame)}:
		return nil
	case <-d.done:
		return d.wrote
	}
}

// finish lets out what is late. The error says that the last frame did not get out.
func (d *delayLine) finish() error {
	close(d.in)
	<-d.done
	if d.wrote == nil && !d.last {
		return errLostGoodbye
	}
	return d.wrote
}

// run writes every frame when it is due, until the first error.
func (d *delayLine) run() {
	defer close(d.done)
	for late := range d.in {
		if d.wrote = d.release(late); d.wrote != nil {
			return
		}
	}
}

// release waits until a frame is due and writes it. A link that ends does not
// wait for long.
func (d *delayLine) release(late delayed) error {
	wait := time.Until(late.due)
	if wait <= 0 {
		return d.l.put(late.frame)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return d.l.put(late.frame)
	case <-d.l.stop:
	}
	limit := time.NewTimer(farewellTime)
	defer limit.Stop()
	select {
	case <-timer.C:
		return d.l.put(late.frame)
	case <-limit.C:
		return errLostGoodbye
	}
}

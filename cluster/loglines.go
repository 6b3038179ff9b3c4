package cluster

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// logRoom is how many lines wait for the logger; more are lost.
const logRoom = 1024

// logLines hands the lines of a node to its logger, in order, on a goroutine of its own: a
// logger that blocks, as one on a full pipe or a disk that hangs, holds up neither the driver
// nor a link.
type logLines struct {
	to    hclog.Logger
	lines chan logLine
	lost  atomic.Uint64
	quit  chan struct{}
	done  chan struct{} // closed when run has returned
}

type logLine struct {
	name  string // of the logger
	level hclog.Level
	text  string
	args  []any // nobody changes them, nor what they point to
}

// newLogLines returns lines that are to be closed.
func newLogLines(to hclog.Logger) *logLines {
	q := &logLines{
		to: to, lines: make(chan logLine, logRoom), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go q.run()
	return q
}

// logger returns the logger that never blocks. Its own level says nothing: that of the other
// counts.
func (q *logLines) logger() hclog.Logger {
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{
		Name: q.to.Name(), Level: hclog.Off, Output: io.Discard,
	})
	log.RegisterSink(q)
	return log
}

// Accept implements hclog.SinkAdapter.
func (q *logLines) Accept(name string, level hclog.Level, text string, args ...any) {
	select {
	case q.lines <- logLine{name, level, text, args}:
	default:
		q.lost.Add(1)
	}
}

// run writes until quit, and then what still waits.
func (q *logLines) run() {
	defer close(q.done)
	var told uint64
	for {
		select {
		case l := <-q.lines:
			q.write(&l)
		case <-q.quit:
			for len(q.lines) > 0 {
				l := <-q.lines
				q.write(&l)
			}
			return
		}
		if lost := q.lost.Load(); lost > told && len(q.lines) == 0 {
			q.to.Warn("log lines were lost: the logger was too slow", "lines", lost-told)
			told = lost
		}
	}
}

func (q *logLines) write(l *logLine) {
	to := q.to
	if l.name != to.Name() {
		to = to.ResetNamed(l.name)
	}
	to.Log(l.level, l.text, l.args...)
}

// close ends run and waits for it, until shortly after ctx has ended.
func (q *logLines) close(ctx context.Context) error {
	close(q.quit)
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-q.done:
		return nil
	case <-time.After(cleanupTimeout):
		return fmt.Errorf("the logger blocks, and has not taken the last lines: %w", context.Cause(ctx))
	}
}

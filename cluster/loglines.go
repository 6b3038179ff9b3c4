package cluster

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
)

const (
	logRoom  = 1024                   // how many lines wait for the logger; more are lost
	longWait = 100 * time.Millisecond // a line that waited longer says so
)

// logLines passes the log lines of a node to its logger, in order, on a goroutine of its own. So a
// logger that blocks, on a full pipe or a disk that hangs, holds up neither the driver nor a link.
type logLines struct {
	to    hclog.Logger
	lines chan logLine
	lost  atomic.Uint64
	quit  chan struct{}
	done  chan struct{} // closed when all lines before quit are written

	mu   sync.Mutex // held while a line is written
	told uint64     // how many of lost the log has reported
}

type logLine struct {
	name  string // of the logger
	level hclog.Level
	text  string
	args  []any // nobody changes them or what they point to
	at    time.Time
}

// newLogLines starts the goroutine, which close ends.
func newLogLines(to hclog.Logger) *logLines {
	q := &logLines{
		to: to, lines: make(chan logLine, logRoom), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go q.run()
	return q
}

// logger returns a logger that never blocks. It has no level of its own: that of the node's logger
// counts.
func (q *logLines) logger() hclog.Logger {
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{
		Name: q.to.Name(), Level: hclog.Off, Output: io.Discard,
	})
	log.RegisterSink(q)
	return log
}

// Accept implements hclog.SinkAdapter. After close the caller itself writes the line.
func (q *logLines) Accept(name string, level hclog.Level, text string, args ...any) {
	if !q.takes(level) {
		return
	}
	select {
	case q.lines <- logLine{name, level, text, args, time.Now()}:
	default:
		q.lost.Add(1)
	}
	select {
	case <-q.done:
		q.drain()
	default:
	}
}

// takes reports whether the logger writes lines of that level: other lines must not take room.
func (q *logLines) takes(level hclog.Level) bool {
	if _, ok := q.to.(hclog.InterceptLogger); ok {
		return true // its sinks have their own levels
	}
	switch level { // GetLevel is hclog.NoLevel for some loggers that write
	case hclog.Trace:
		return q.to.IsTrace()
	case hclog.Debug:
		return q.to.IsDebug()
	case hclog.Info:
		return q.to.IsInfo()
	case hclog.Warn:
		return q.to.IsWarn()
	}
	return q.to.IsError()
}

// run writes until quit, and then what still waits.
func (q *logLines) run() {
	for {
		select {
		case l := <-q.lines:
			q.write(&l)
		case <-q.quit:
			q.drain()
			close(q.done)
			q.drain() // lines that came between the two
			return
		}
	}
}

func (q *logLines) drain() {
	for {
		select {
		case l := <-q.lines:
			q.write(&l)
		default:
			return
		}
	}
}

// write writes a line. It also reports lost lines: the first loss at once, later ones when no line
// waits or when logRoom lines were lost.
func (q *logLines) write(l *logLine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	to := q.to
	if l.name != to.Name() {
		to = to.ResetNamed(l.name)
	}
	if waited := time.Since(l.at); waited > longWait {
		l.args = append(l.args, "waited", waited.Round(time.Millisecond))
	}
	to.Log(l.level, l.text, l.args...)
	more := q.lost.Load() - q.told
	if more > 0 && (q.told == 0 || len(q.lines) == 0 || more >= logRoom) {
		q.to.Warn("log lines were lost: the logger was too slow", "lines", more)
		q.told += more
	}
}

// close ends run and waits for it, at most until CleanupTime after the end of ctx.
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
	case <-time.After(loop.CleanupTime):
		return fmt.Errorf("the logger blocks, and has not taken the last lines: %w", context.Cause(ctx))
	}
}

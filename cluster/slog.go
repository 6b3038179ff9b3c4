package cluster

import (
	"context"
	"io"
	"log"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// LoggerFromSlog returns a logger for Config that passes all lines to to. The handler of to decides
// which levels are written; trace is slog.LevelDebug - 4. The attribute "logger" names the part of
// the node that logs, if it is not the node itself.
func LoggerFromSlog(to *slog.Logger) hclog.Logger {
	l := &slogLogger{to: to.Handler(), floor: new(atomic.Int32)}
	l.floor.Store(int32(hclog.Trace))
	return l
}

// slogLogger is an hclog.Logger on top of a handler of log/slog.
type slogLogger struct {
	to      slog.Handler
	name    string
	implied []any         // keys and values; each key is there once
	floor   *atomic.Int32 // the lowest hclog.Level; loggers that are derived from it share it
}

// emit must be called directly by an exported method: the source of a line is the caller of that.
func (l *slogLogger) emit(level hclog.Level, msg string, args []any) {
	if !l.has(level) {
		return
	}
	var caller [1]uintptr
	runtime.Callers(3, caller[:])
	r := slog.NewRecord(time.Now(), toSlog(level), msg, caller[0])
	if l.name != "" {
		r.Add("logger", l.name)
	}
	r.Add(merged(l.implied, args)...)
	_ = l.to.Handle(context.Background(), r) // slog ignores this error, too
}

func (l *slogLogger) has(level hclog.Level) bool {
	return level >= hclog.Level(l.floor.Load()) && level != hclog.Off &&
		l.to.Enabled(context.Background(), toSlog(level))
}

// toSlog converts a level: those of slog are 4 apart.
func toSlog(level hclog.Level) slog.Level {
	return slog.LevelInfo + slog.Level(4*(level-hclog.Info))
}

func (l *slogLogger) Log(level hclog.Level, msg string, args ...any) {
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	l.emit(level, msg, args)
}

func (l *slogLogger) Trace(msg string, args ...any) { l.emit(hclog.Trace, msg, args) }
func (l *slogLogger) Debug(msg string, args ...any) { l.emit(hclog.Debug, msg, args) }
func (l *slogLogger) Info(msg string, args ...any)  { l.emit(hclog.Info, msg, args) }
func (l *slogLogger) Warn(msg string, args ...any)  { l.emit(hclog.Warn, msg, args) }
func (l *slogLogger) Error(msg string, args ...any) { l.emit(hclog.Error, msg, args) }

func (l *slogLogger) IsTrace() bool { return l.has(hclog.Trace) }
func (l *slogLogger) IsDebug() bool { return l.has(hclog.Debug) }
func (l *slogLogger) IsInfo() bool  { return l.has(hclog.Info) }
func (l *slogLogger) IsWarn() bool  { return l.has(hclog.Warn) }
func (l *slogLogger) IsError() bool { return l.has(hclog.Error) }

func (l *slogLogger) ImpliedArgs() []any { return slices.Clone(l.implied) }

func (l *slogLogger) Name() string { return l.name }

func (l *slogLogger) With(args ...any) hclog.Logger {
	derived := *l
	derived.implied = merged(l.implied, args)
	return &derived
}

// merged adds the keys and values of more to all. A key that is there gets the new value: slog
// would write it twice, which is invalid JSON.
func merged(all, more []any) []any {
	all = slices.Clone(all)
	for pair := range slices.Chunk(more, 2) {
		at := -1
		for i := 0; i < len(all); i += 2 {
			old, isText := all[i].(string)
			if key, ok := pair[0].(string); ok && isText && key == old && len(pair) == 2 {
				at = i
			}
		}
		if at < 0 {
			all = append(all, pair...)
		} else {
			all[at+1] = pair[1]
		}
	}
	return all
}

func (l *slogLogger) Named(name string) hclog.Logger {
	if l.name != "" {
		name = l.name + "." + name
	}
	return l.ResetNamed(name)
}

func (l *slogLogger) ResetNamed(name string) hclog.Logger {
	derived := *l
	derived.name = name
	return &derived
}

// SetLevel drops lines below a level even if the handler would write them.
func (l *slogLogger) SetLevel(level hclog.Level) { l.floor.Store(int32(level)) }

func (l *slogLogger) GetLevel() hclog.Level {
	for level := hclog.Trace; level <= hclog.Error; level++ {
		if l.has(level) {
			return level
		}
	}
	return hclog.Off
}

func (l *slogLogger) StandardLogger(opts *hclog.StandardLoggerOptions) *log.Logger {
	return l.reader().StandardLogger(opts)
}

func (l *slogLogger) StandardWriter(opts *hclog.StandardLoggerOptions) io.Writer {
	return l.reader().StandardWriter(opts)
}

// reader returns a logger of hclog, which reads the level that a line may begin with.
func (l *slogLogger) reader() hclog.Logger {
	r := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	r.RegisterSink(slogSink{l})
	return r
}

// slogSink takes the lines of a log.Logger.
type slogSink struct{ to *slogLogger }

func (s slogSink) Accept(_ string, level hclog.Level, text string, _ ...any) {
	s.to.emit(level, text, nil)
}

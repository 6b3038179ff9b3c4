package cluster

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// LoggerFromSlog returns a logger for Config that hands all lines to to. Its handler decides
// which levels there are; trace is below slog.LevelDebug by 4. The attribute "logger" names
// the part of the node that speaks, if it is not the node itself.
func LoggerFromSlog(to *slog.Logger) hclog.Logger {
	l := &slogLogger{to: to.Handler(), floor: new(atomic.Int32)}
	l.floor.Store(int32(hclog.Trace))
	return l
}

// slogLogger is a handler of log/slog as those see it that log.
type slogLogger struct {
	to      slog.Handler
	name    string
	implied []any         // keys and values; no key is there twice
	floor   *atomic.Int32 // the lowest hclog.Level; all that were derived share it
}

// emit is called by the methods that a caller names, for the source to be the caller.
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
	_ = l.to.Handle(context.Background(), r) // as slog itself: nobody could be told
}

func (l *slogLogger) has(level hclog.Level) bool {
	return level >= hclog.Level(l.floor.Load()) && level != hclog.Off &&
		l.to.Enabled(context.Background(), toSlog(level))
}

// toSlog is a level in the steps of slog.
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

// merged are keys and values in which those of more replace those of the same key: slog
// would write both, which is no right JSON.
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

// SetLevel leaves out what is below a level even if the handler would take it.
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
	return log.New(l.StandardWriter(opts), "", 0)
}

func (l *slogLogger) StandardWriter(opts *hclog.StandardLoggerOptions) io.Writer {
	w := &slogWriter{to: l}
	if opts != nil {
		w.options = *opts
	}
	return w
}

// slogWriter takes the lines of a log.Logger, which may begin with a level as in [WARN].
type slogWriter struct {
	to      *slogLogger
	options hclog.StandardLoggerOptions
}

func (w *slogWriter) Write(line []byte) (int, error) {
	text, level := string(bytes.TrimSpace(line)), hclog.Info
	if head, rest, found := strings.Cut(text, "]"); found && strings.HasPrefix(head, "[") {
		name := strings.TrimPrefix(head, "[")
		if name == "ERR" {
			name = "ERROR"
		}
		if of := hclog.LevelFromString(name); of != hclog.NoLevel {
			text = strings.TrimSpace(rest)
			if w.options.InferLevels {
				level = of
			}
		}
	}
	if w.options.ForceLevel != hclog.NoLevel {
		level = w.options.ForceLevel
	}
	w.to.emit(level, text, nil)
	return len(line), nil
}

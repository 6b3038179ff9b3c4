package netmesh

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

const (
	logEvery  = time.Minute // the same warning about the same peer is repeated no sooner
	maxLogged = 1024        // warnings remembered
)

// logger limits warnings per kind and peer: a hostile or broken peer must not
// fill the log.
type logger struct {
	hclog.Logger

	mu    sync.Mutex
	since map[warning]time.Time
	quiet map[warning]int
}

type warning struct{ kind, who string }

// warn logs unless the same was logged a short while ago.
func (l *logger) warn(kind, who, msg string, args ...any) {
	if repeats, due := l.due(warning{kind, who}, time.Now()); due {
		l.Warn(msg, append(args, "reason", kind, "repeats", repeats)...)
	}
}

// warnRefused is warn for a handshake that failed. Two processes that may both vote by one
// name are an error.
func (l *logger) warnRefused(r Reason, who, msg string, args ...any) {
	if r != ReasonCopied {
		l.warn(r.String(), who, msg, args...)
	} else if repeats, due := l.due(warning{r.String(), who}, time.Now()); due {
		l.Error(msg, append(args, "reason", r.String(), "repeats", repeats)...)
	}
}

func (l *logger) due(w warning, now time.Time) (repeats int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.since[w]; ok && now.Sub(last) < logEvery {
		l.quiet[w]++
		return 0, false
	}
	if l.since == nil || len(l.since) >= maxLogged {
		l.since, l.quiet = make(map[warning]time.Time), make(map[warning]int)
	}
	repeats = l.quiet[w]
	l.since[w] = now
	delete(l.quiet, w)
	return repeats, true
}

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

	mu     sync.Mutex
	warned map[warning]repeats
}

type warning struct{ kind, who string }

type repeats struct {
	since time.Time // of the last line
	count int       // that were not logged since
}

// warn logs unless the same was logged a short while ago. Two processes that may both vote
// by one name are an error.
func (l *logger) warn(kind, who, msg string, args ...any) {
	log := l.Warn
	if kind == ReasonCopied.String() {
		log = l.Error
	}
	if n, due := l.due(warning{kind, who}, time.Now()); due {
		log(msg, append(args, "reason", kind, "repeats", n)...)
	}
}

// due reports whether w is to be logged now, and how often it was not since the last time.
func (l *logger) due(w warning, now time.Time) (count int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.warned[w]
	if known && now.Sub(last.since) < logEvery {
		l.warned[w] = repeats{last.since, last.count + 1}
		return 0, false
	}
	if l.warned == nil || len(l.warned) >= maxLogged {
		l.warned = make(map[warning]repeats)
	}
	l.warned[w] = repeats{since: now}
	return last.count, true
}

package netmesh

import (
	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/internal/base/loglimit"
)

// logger limits warnings per kind and peer: a hostile or broken peer must not
// fill the log.
type logger struct {
	hclog.Logger

	limit loglimit.Limiter[warning]
}

type warning struct{ kind, who string }

// warn logs unless the same was logged a short while ago. Two processes that may both vote
// by one name are an error.
func (l *logger) warn(kind, who, msg string, args ...any) {
	log := l.Warn
	if kind == ReasonCopied.String() {
		log = l.Error
	}
	if n, due := l.limit.Due(warning{kind, who}); due {
		log(msg, append(args, "reason", kind, "repeats", n)...)
	}
}

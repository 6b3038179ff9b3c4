package netmesh

import (
	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/limit"
)

// maxRefusals is how many lines a minute report refused connections: strangers with many addresses
// must not fill the log.
const maxRefusals = 64

// logger limits warnings per kind and peer: a hostile or broken peer must not
// fill the log.
type logger struct {
	hclog.Logger

	limit   limit.Log[warning]
	refused limit.Log[warning] // Most is maxRefusals
}

type warning struct{ kind, who string }

// connectionRefused is the message that strangers can cause.
const connectionRefused = "connection refused"

// warn logs unless the same was logged a short while ago. Two processes that may both vote
// by one name are an error, which the refusals of strangers do not hide.
func (l *logger) warn(kind, who, msg string, args ...any) {
	log, limit := l.Warn, &l.limit
	switch {
	case kind == ReasonCopied.String(), kind == ReasonOutdated.String():
		log = l.Error
	case msg == connectionRefused:
		limit = &l.refused
	}
	if n, due := limit.Due(warning{kind, who}); due {
		log(msg, append(args, "reason", kind, "repeats", n)...)
	}
}

// logPeer logs what happens to a peer; args begin with "peer" and its name. Peers that are no
// voters may come and go under any number of names: one line a minute stands for all of them.
func (m *Mesh) logPeer(msg string, args ...any) {
	log := m.log.Info
	if node, _ := args[1].(elector.NodeID); !m.cfg.isVoter(node) {
		if _, due := m.log.limit.Due(warning{msg, ""}); !due {
			log = m.log.Debug
		}
	}
	log(msg, args...)
}

package bully

import (
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// machine is what the variants share.
type machine struct {
	*member.Member
	beat    time.Duration // between heartbeats
	silence time.Duration // after which a member has failed
	ta, tc  time.Duration // waits for an answer, for a coordinator
}

const nobody = member.Nobody

func maker(rules func(machine) member.Rules) func(algorithm.Config) algorithm.Machine {
	return member.Maker(func(m *member.Member) member.Rules {
		t := m.Cfg.Elector.Timing
		return rules(machine{Member: m, beat: t.HeartbeatBroadcast, silence: t.Inactivity(),
			ta: t.ElectionResult, tc: 2 * t.ElectionResult})
	})
}

func (m *machine) sendHigher(msg algorithm.Message) {
	for i := range m.Self {
		m.Send(i, msg)
	}
}

func (m *machine) sendLower(msg algorithm.Message) {
	for i := m.Self + 1; i < len(m.Cfg.Order); i++ {
		m.Send(i, msg)
	}
}

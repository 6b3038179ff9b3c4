package bully

import (
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ranked"
)

// machine is what the variants share.
type machine struct {
	*ranked.Member
	beat    time.Duration // between heartbeats
	silence time.Duration // after which a member has failed
	ta, tc  time.Duration // waits for an answer, for a coordinator
}

const nobody = ranked.Nobody

func maker(rules func(machine) ranked.Rules) func(algorithm.Config) algorithm.Machine {
	return ranked.Maker(func(m *ranked.Member) ranked.Rules {
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
	for i := m.Self + 1; i < len(m.Links); i++ {
		m.Send(i, msg)
	}
}

package bully

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// strict is the paper's algorithm, under the paper's names.
type strict struct {
	*member.Member
	status      status // S(i).s
	coordinator int    // S(i).c
	halted      int    // S(i).h: by whom
	suspect     bool   // the coordinator is silent

	calls  uint64     // numbers the phases of calls, from anywhere: a Return may come late
	phase  string     // the procedure that Election has called, and waits for; "" for none
	away   int        // its calls that have not returned
	higher member.Set // members
	lower  member.Set
	up     member.Set   // S(i).Up: who has returned Halt
	timer  member.Timer // end of the phase, or of "a long time"
	checks member.Timer // when a coordinator calls AreYouNormal
}

// status of a member; it is in Election as long as it is stopped.
type status uint8

const (
	election status = iota
	reorganization
	normal
)

func beginStrict(m *member.Member) member.Rules {
	s := &strict{Member: m, coordinator: member.Nobody, halted: member.Nobody,
		calls: m.Entropy >> 48, timer: m.After(m.Timing.ElectionResult)}
	for i := range m.Others {
		s.higher.Put(i, i < m.Self)
		s.lower.Put(i, i > m.Self)
	}
	return s
}

// long is "a long time" of a member that is not Normal.
func (s *strict) long() member.Timer { return s.After(2 * s.Timing.ElectionResult) }

func (s *strict) Receive(from int, message algorithm.Message) {
	if r, ok := message.(Return); ok {
		s.returned(from, r)
		return
	}
	msg, no := message.(Call), false
	switch msg.Kind {
	case "Halt":
		s.stop(from, "Halt")
		s.timer = s.long()
	case "NewCoordinator":
		if s.halted == from && s.status == election {
			s.coordinator, s.status, s.timer = from, reorganization, s.long()
		}
	case "Ready":
		if s.coordinator == from && s.status == reorganization {
			s.status, s.suspect, s.Why = normal, false, "Ready"
			s.timer = s.After(s.Timing.Inactivity())
		}
	case "AreYouNormal":
		if no = s.status != normal || s.coordinator != from; !no {
			s.suspect, s.Why = false, "AreYouNormal"
		}
		if !no && s.phase == "" {
			s.timer = s.After(s.Timing.Inactivity())
		}
	}
	s.Send(from, Return{msg.Number, no})
}

// stop is procedure STOP, of a member that from halts.
func (s *strict) stop(from int, why string) {
	s.status, s.halted, s.coordinator, s.phase, s.Why = election, from, member.Nobody, "", why
}

// elect is procedure Election up to its first answer.
func (s *strict) elect(why string) {
	s.Why = why
	s.call("AreYouUp", s.higher)
	s.proceed()
}

func (s *strict) call(procedure string, at member.Set) {
	s.calls++
	s.phase, s.away, s.timer = procedure, at.Count(), s.After(s.Timing.ElectionResult)
	for i := range s.Others {
		if at.Has(i) {
			s.Send(i, Call{procedure, s.calls})
		}
	}
}

func (s *strict) returned(from int, r Return) {
	switch {
	case r.Number != s.calls:
	case s.phase == "":
		if r.No && s.leads() {
			s.elect("AreYouNormal: no")
		}
	case s.phase == "AreYouUp":
		s.phase, s.timer, s.Why = "", s.long(), "a higher member is up"
	default:
		if s.phase == "Halt" {
			s.up.Put(from, true)
		}
		s.away--
		s.proceed()
	}
}

// proceed goes on to the next phase when all calls of this one have returned.
func (s *strict) proceed() {
	for s.phase != "" && s.away == 0 {
		switch s.phase {
		case "AreYouUp":
			s.stop(s.Self, "no higher member is up")
			s.up = member.Set{}
			s.call("Halt", s.lower)
		case "Halt": // the election point
			s.coordinator, s.status = s.Self, reorganization
			s.call("NewCoordinator", s.up)
		case "NewCoordinator":
			s.call("Ready", s.up)
		case "Ready":
			s.phase, s.status, s.Why = "", normal, "all are Ready"
			s.checks = s.After(s.Timing.HeartbeatBroadcast)
		}
	}
}

func (s *strict) Tick() algorithm.Time {
	if s.idle() {
		if s.Due(&s.checks) {
			s.checks = s.After(s.Timing.HeartbeatBroadcast)
			s.Broadcast(Call{"AreYouNormal", s.calls})
		}
	} else if s.Due(&s.timer) {
		s.timeOut()
	}
	if s.idle() {
		return s.checks.When()
	}
	return s.timer.When()
}

// timeOut ends a phase without the returns that are missing, or a long time.
func (s *strict) timeOut() {
	switch s.phase {
	case "AreYouUp", "Halt":
		s.away = 0 // those are down
		s.proceed()
	case "NewCoordinator", "Ready":
		s.elect("a member has failed")
	case "":
		s.suspect, s.Why = true, "Timeout"
		s.elect("Timeout")
	}
}

// idle reports whether the member is a coordinator that has nothing to do but to check.
func (s *strict) idle() bool { return s.leads() && s.phase == "" }

func (s *strict) leads() bool { return s.status == normal && s.coordinator == s.Self }

func (s *strict) View() algorithm.View {
	v := algorithm.View{Role: elector.Follower}
	switch {
	case s.leads():
		v.Role, v.Leader = elector.Leader, s.Cfg.Self()
	case s.phase != "":
		v.Role = elector.Candidate
	}
	if s.status == normal && !s.suspect {
		v.Leader = s.Name(s.coordinator)
	}
	return v
}

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

	calls  uint64       // numbers the phases of calls, from anywhere: a Return may come late
	phase  call         // what procedure Election waits for
	up     member.Set   // S(i).Up: who has returned Halt
	away   int          // calls of the phase that have not returned
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

// call is a phase of procedure Election.
type call uint8

const (
	noCall call = iota
	areYouUp
	halt
	newCoordinator
	ready
)

func beginStrict(m *member.Member) member.Rules {
	return &strict{Member: m, coordinator: member.Nobody, halted: member.Nobody,
		calls: m.Entropy >> 48, timer: m.After(m.Timing.ElectionResult)}
}

// long is "a long time" of a member that is not Normal.
func (s *strict) long() member.Timer { return s.After(2 * s.Timing.ElectionResult) }

func (s *strict) Receive(from int, msg algorithm.Message) {
	higher := from < s.Self
	switch c := msg.(type) {
	case AreYouUp:
		s.Send(from, Return{Number: c.Number})
	case Halt:
		if higher {
			s.stop(from, "Halt")
			s.timer = s.long()
			s.Send(from, Return{Number: c.Number})
		}
	case NewCoordinator:
		if s.halted == from && s.status == election {
			s.coordinator, s.status, s.timer = from, reorganization, s.long()
		}
		s.Send(from, Return{Number: c.Number})
	case Ready:
		if s.coordinator == from && s.status == reorganization {
			s.status, s.suspect, s.Why = normal, false, "Ready"
			s.timer = s.After(s.Timing.Inactivity())
		}
		s.Send(from, Return{Number: c.Number})
	case AreYouNormal:
		s.checked(from, c)
	case Return:
		s.returned(from, c)
	}
}

// checked answers whether this member is Normal with the caller as coordinator.
func (s *strict) checked(from int, c AreYouNormal) {
	follows := s.status == normal && s.coordinator == from
	if follows {
		s.suspect, s.Why = false, "AreYouNormal"
	}
	if follows && s.phase == noCall {
		s.timer = s.After(s.Timing.Inactivity())
	}
	s.Send(from, Return{Number: c.Number, No: !follows})
}

// stop is procedure STOP, of a member that from halts.
func (s *strict) stop(from int, why string) {
	s.status, s.halted, s.coordinator, s.phase, s.Why = election, from, member.Nobody, noCall, why
}

// elect is procedure Election up to its first answer.
func (s *strict) elect(why string) {
	s.Why = why
	s.begin(areYouUp, s.Self)
	sendHigher(s.Member, AreYouUp{Number: s.calls})
	s.proceed()
}

// begin starts a phase of that many calls.
func (s *strict) begin(c call, away int) {
	s.calls++
	s.phase, s.away, s.timer = c, away, s.After(s.Timing.ElectionResult)
}

// returned takes the return of a call.
func (s *strict) returned(from int, r Return) {
	switch {
	case r.Number != s.calls:
	case s.phase == noCall:
		if r.No && s.leads() {
			s.elect("AreYouNormal: no")
		}
	case s.phase == areYouUp:
		s.phase, s.timer, s.Why = noCall, s.long(), "a higher member is up"
	default:
		if s.phase == halt {
			s.up.Put(from, true)
		}
		s.away--
		s.proceed()
	}
}

// proceed goes on to the next phase when all calls of this one have returned.
func (s *strict) proceed() {
	for s.phase != noCall && s.away == 0 {
		switch s.phase {
		case areYouUp:
			s.haltLower()
		case halt:
			s.coordinate()
		case newCoordinator:
			s.begin(ready, s.callUp(Ready{Number: s.calls + 1}))
		case ready:
			s.phase, s.status, s.Why = noCall, normal, "all are Ready"
			s.checks = s.After(s.Timing.HeartbeatBroadcast)
		}
	}
}

// haltLower stops this member and calls Halt at all lower ones.
func (s *strict) haltLower() {
	s.stop(s.Self, "no higher member is up")
	s.up = member.Set{}
	s.begin(halt, len(s.Cfg.Order)-1-s.Self)
	sendLower(s.Member, Halt{Number: s.calls})
}

// coordinate is the election point: who has returned Halt gets a new coordinator.
func (s *strict) coordinate() {
	s.coordinator, s.status = s.Self, reorganization
	s.begin(newCoordinator, s.callUp(NewCoordinator{Number: s.calls + 1}))
}

// callUp calls all that are up, and returns how many these are.
func (s *strict) callUp(msg algorithm.Message) int {
	for i := range s.Others {
		if s.up.Has(i) {
			s.Send(i, msg)
		}
	}
	return s.up.Count()
}

func (s *strict) Tick() algorithm.Time {
	if s.idle() {
		if s.Due(&s.checks) {
			s.checks = s.After(s.Timing.HeartbeatBroadcast)
			s.Broadcast(AreYouNormal{Number: s.calls})
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
	case areYouUp, halt:
		s.away = 0 // those are down
		s.proceed()
	case newCoordinator, ready:
		s.elect("a member has failed")
	case noCall:
		s.suspect, s.Why = true, "Timeout"
		s.elect("Timeout")
	}
}

// idle reports whether the member is a coordinator that has nothing to do but to check.
func (s *strict) idle() bool { return s.leads() && s.phase == noCall }

func (s *strict) leads() bool { return s.status == normal && s.coordinator == s.Self }

func (s *strict) View() algorithm.View {
	v := algorithm.View{Role: elector.Follower}
	switch {
	case s.leads():
		v.Role, v.Leader = elector.Leader, s.Cfg.Self()
	case s.phase != noCall:
		v.Role = elector.Candidate
	}
	if s.status == normal && !s.suspect {
		v.Leader = s.Name(s.coordinator)
	}
	return v
}

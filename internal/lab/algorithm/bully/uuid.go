package bully

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// uuid is a member of the program with epochs; its epoch is Member.Term.
type uuid struct {
	*member.Member
	user   member.Timer // when the program's user calls for a round
	passed bool         // an ELECTION on
	probe  member.Timer // of the detector
	target int          // that it probes; Nobody between probes
	asked  bool         // others to probe it
}

func beginUUID(m *member.Member) member.Rules {
	return &uuid{Member: m, user: m.After(m.Timing.ElectionResult),
		probe: m.After(m.Timing.Inactivity()), target: member.Nobody}
}

func (u *uuid) Receive(from int, msg algorithm.Message) {
	switch msg := msg.(type) {
	case Election:
		u.Send(from, OK{})
		if from > u.Self && !u.passed {
			u.passed = true
			sendHigher(u.Member, Election{u.Term})
		}
	case Coordinator:
		u.Term = max(u.Term, msg.Epoch)
		u.Become(elector.Follower, from, "COORDINATOR")
		u.Send(from, OK{})
	case MemberFailed:
		u.Send(from, OK{})
	case Ping:
		u.Send(from, Ack{Member: u.Cfg.Self(), For: msg.For})
	case PingRequest:
		u.Send(u.Rank(msg.Member), Ping{For: u.Name(from)})
	case Ack:
		if asker := u.Cfg.Rank(msg.For); asker >= 0 {
			u.Send(asker, Ack{Member: msg.Member})
		} else if u.target != member.Nobody && msg.Member == u.Name(u.target) {
			u.target, u.probe = member.Nobody, u.After(u.Timing.Inactivity())
		}
	}
}

// electLeader is a round, under the source's name.
func (u *uuid) electLeader() {
	const round = 1 // of this life
	if u.Self > 0 {
		sendHigher(u.Member, Election{round})
		return
	}
	u.Term = max(u.Term, round)
	u.Become(elector.Leader, u.Self, "no larger member is listed")
	u.Broadcast(Coordinator{round})
}

// detect goes on with the probe of a member, or begins the next one.
func (u *uuid) detect() {
	u.probe = u.After(u.Timing.ElectionResult)
	if others := len(u.Cfg.Order) - 1; u.target == member.Nobody && others > 0 {
		u.target, u.asked = int(u.Draw(time.Duration(others))), false
		if u.target >= u.Self {
			u.target++
		}
		u.Send(u.target, Ping{})
		return
	}
	for i := range u.Others {
		switch {
		case i == u.target:
		case u.asked:
			u.Send(i, MemberFailed{u.Name(u.target)})
		default:
			u.Send(i, PingRequest{u.Name(u.target)})
		}
	}
	if u.asked {
		u.target, u.probe = member.Nobody, u.After(u.Timing.Inactivity())
	}
	u.asked = true
}

func (u *uuid) Tick() algorithm.Time {
	if u.Due(&u.user) {
		u.electLeader()
	}
	if u.Due(&u.probe) {
		u.detect()
	}
	return member.Earliest(u.user, u.probe)
}

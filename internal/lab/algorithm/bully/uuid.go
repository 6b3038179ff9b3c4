package bully

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// uuid is a member of the program with epochs; its epoch is Member.Term.
type uuid struct {
	*member.Member
	user   member.Timer // when the program's user calls for a round
	passed bool         // an ELECTION on
}

func beginUUID(m *member.Member) member.Rules {
	return &uuid{Member: m, user: m.After(m.Timing.ElectionResult)}
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

func (u *uuid) Tick() algorithm.Time {
	if u.Due(&u.user) {
		u.electLeader()
	}
	return u.user.When()
}

package bully

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// plain is the algorithm as books tell it. Its coordinator is Member.Leader.
type plain struct {
	*member.Member
	phase  phase
	timer  member.Timer   // of the phase
	quiet  algorithm.Time // until when messages of lower members start no election
	silent member.Timer   // when another coordinator has failed
	beat   member.Timer   // of this member as coordinator
}

// phase says what an election of the member is at.
type phase uint8

const (
	none     phase = iota // no election runs
	recovery              // one is about to start
	asked                 // ELECTION was sent, no ANSWER has come
	answered              // a higher member will send COORDINATOR
)

func beginPlain(m *member.Member) member.Rules {
	return &plain{Member: m, phase: recovery, timer: m.After(m.Timing.ElectionResult)}
}

func (p *plain) Receive(from int, msg algorithm.Message) {
	higher := from < p.Self
	switch msg.(type) {
	case Election:
		if !higher {
			p.Send(from, Answer{})
			p.protest("ELECTION from a lower member")
		}
	case Answer:
		if higher && p.phase == asked {
			p.phase, p.timer, p.Why = answered, p.After(2*p.Timing.ElectionResult), "ANSWER"
		}
	case Coordinator, Heartbeat:
		_, coordinator := msg.(Coordinator)
		switch {
		case !higher:
			p.protest("a lower member coordinates")
		case coordinator || p.Leader == member.Nobody || from <= p.Leader:
			p.follow(from, algorithm.Name(msg))
		}
	}
}

// follow accepts a coordinator. What a member does when it recovers, it does all the same.
func (p *plain) follow(from int, why string) {
	p.Leader, p.Why = from, why
	p.silent, p.beat = p.After(p.Timing.Inactivity()), member.Timer{}
	if p.phase != recovery {
		p.phase, p.timer = none, member.Timer{}
	}
}

// protest starts an election because of a lower member, unless one runs.
func (p *plain) protest(why string) {
	if p.Now >= p.quiet && (p.phase == none || p.phase == recovery) {
		p.elect(why)
	}
}

func (p *plain) elect(why string) {
	p.quiet = p.Now.Add(p.Timing.ElectionResult)
	if p.Self == 0 {
		p.win("the highest")
		return
	}
	p.phase, p.timer, p.Why = asked, member.At(p.quiet), why
	sendHigher(p.Member, Election{})
}

func (p *plain) win(why string) {
	p.phase, p.Leader, p.Why = none, p.Self, why
	p.timer, p.silent = member.Timer{}, member.Timer{}
	p.beat = p.After(p.Timing.HeartbeatBroadcast)
	p.Broadcast(Coordinator{})
}

func (p *plain) Tick() algorithm.Time {
	if p.Due(&p.silent) {
		p.Leader, p.Why = member.Nobody, "the coordinator is silent"
		if p.phase == none {
			p.elect(p.Why)
		}
	}
	if p.Due(&p.timer) {
		switch p.phase {
		case recovery:
			p.elect("recovery")
		case asked:
			p.win("no ANSWER")
		case answered:
			p.elect("no COORDINATOR")
		}
	}
	if p.Due(&p.beat) {
		p.beat = p.After(p.Timing.HeartbeatBroadcast)
		p.Broadcast(Heartbeat{})
	}
	p.Role = elector.Follower
	switch {
	case p.Leader == p.Self:
		p.Role = elector.Leader
	case p.phase == asked:
		p.Role = elector.Candidate
	}
	return member.Earliest(p.timer, p.silent, p.beat)
}

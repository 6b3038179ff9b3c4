package bully

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// plain is the algorithm as books tell it.
type plain struct {
	machine
	phase       phase
	timer       algorithm.Time // of the phase
	quiet       algorithm.Time // until when messages of lower members start no election
	coordinator int
	silent      algorithm.Time // when the coordinator has failed
	nextBeat    algorithm.Time // of this member as coordinator
}

// phase says what an election of the member is at.
type phase uint8

const (
	none     phase = iota // no election runs
	recovery              // one is about to start
	asked                 // ELECTION was sent, no ANSWER has come
	answered              // a higher member will send COORDINATOR
)

func newPlain(m machine) member.Rules {
	return &plain{machine: m, phase: recovery, timer: m.Now.Add(m.ta), coordinator: nobody}
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
			p.phase, p.timer, p.Why = answered, p.Now.Add(p.tc), "ANSWER"
		}
	case Coordinator, Heartbeat:
		_, coordinator := msg.(Coordinator)
		switch {
		case !higher:
			p.protest("a lower member coordinates")
		case coordinator || p.coordinator == nobody || from <= p.coordinator:
			p.follow(from, algorithm.Name(msg))
		}
	}
}

// follow accepts a coordinator. What a member does when it recovers, it does all the same.
func (p *plain) follow(from int, why string) {
	p.coordinator, p.silent, p.Why = from, p.Now.Add(p.silence), why
	if p.phase != recovery {
		p.phase = none
	}
}

// protest starts an election because of a lower member, unless one runs.
func (p *plain) protest(why string) {
	if p.Now >= p.quiet && (p.phase == none || p.phase == recovery) {
		p.elect(why)
	}
}

// elect starts an election.
func (p *plain) elect(why string) {
	p.quiet = p.Now.Add(p.ta)
	if p.Self == 0 {
		p.win("the highest")
		return
	}
	p.phase, p.timer, p.Why = asked, p.Now.Add(p.ta), why
	p.sendHigher(Election{})
}

// win makes this member the coordinator.
func (p *plain) win(why string) {
	p.phase, p.coordinator, p.Why = none, p.Self, why
	p.nextBeat = p.Now.Add(p.beat)
	p.sendLower(Coordinator{})
}

func (p *plain) Tick() algorithm.Time {
	if p.coordinator != nobody && p.coordinator != p.Self && p.Now >= p.silent {
		p.coordinator, p.Why = nobody, "the coordinator is silent"
		if p.phase == none {
			p.elect(p.Why)
		}
	}
	if p.phase != none && p.Now >= p.timer {
		switch p.phase {
		case recovery:
			p.elect("recovery")
		case asked:
			p.win("no ANSWER")
		case answered:
			p.elect("no COORDINATOR")
		}
	}
	wake := elector.Never
	if p.phase != none {
		wake = p.timer
	}
	switch p.coordinator {
	case nobody:
	case p.Self:
		if p.Now >= p.nextBeat {
			p.nextBeat = p.Now.Add(p.beat)
			p.Broadcast(Heartbeat{})
		}
		wake = min(wake, p.nextBeat)
	default:
		wake = min(wake, p.silent)
	}
	return wake
}

func (p *plain) View() algorithm.View {
	role := elector.Follower
	switch {
	case p.coordinator == p.Self:
		role = elector.Leader
	case p.phase == asked:
		role = elector.Candidate
	}
	return algorithm.View{Role: role, Leader: p.Name(p.coordinator)}
}

// Package ours is this project's own election, package elector, as one of the laboratory's
// algorithms: docs/protocol.md has its rules. It alone has leases, guarded work and proofs
// of death.
package ours

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// Elector is the election as it is.
var Elector = algorithm.Algorithm{
	Name:             "bmqelect",
	Title:            "bmqelect",
	Source:           "docs/protocol.md",
	New:              func(c algorithm.Config) algorithm.Machine { return New(c.Elector) },
	OneLeaderPerTerm: true,
	Leased:           true,
	Tuned:            tuned,
}

// tuned is the profile for the links.
func tuned(_ elector.Timing, l algorithm.Link) elector.Timing {
	if l.LossPPM == 0 && 2*l.Delay <= 2*time.Millisecond {
		return elector.LAN()
	}
	return elector.WAN()
}

// WithoutScouting is the election before its scouting extension.
var WithoutScouting = algorithm.Algorithm{
	Name:   "bmqelect-without-scouting",
	Title:  "bmqelect without scouting",
	Source: "docs/protocol.md",
	New: func(c algorithm.Config) algorithm.Machine {
		c.Elector.UnsafeNoScouting = true
		return New(c.Elector)
	},
	OneLeaderPerTerm: true,
}

// Message is a message of the elector.
type Message struct{ elector.Message }

// Name is the protocol's name of the message.
func (m Message) Name() string { return m.Kind.String() }

// Machine is an elector's machine.
type Machine struct {
	*elector.Machine
	// Effects are all that the last step asked for.
	Effects  elector.Effects
	self     algorithm.NodeID
	disk     Disk // as it was last asked for
	messages []algorithm.Envelope
}

// Disk is what an elector has on its disk.
type Disk struct {
	Terms  elector.Terms
	Record elector.Record
}

// New makes the machine of a configuration; it panics on an invalid one.
func New(c elector.Config) *Machine {
	m, err := elector.New(c)
	if err != nil {
		panic(err)
	}
	return &Machine{Machine: m, self: c.Self}
}

// Step hands the input to the elector. The elector itself keeps back what must wait for
// the disk.
func (m *Machine) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	if start, ok := in.(algorithm.Start); ok {
		m.disk, _ = start.Disk.(Disk)
	}
	m.Effects = m.Machine.Step(now, entropy, Input(in))
	m.messages = m.messages[:0]
	for i := range m.Effects.Messages {
		e := &m.Effects.Messages[i]
		m.messages = append(m.messages, algorithm.Envelope{To: e.To, Message: Message{e.Message}})
	}
	eff := algorithm.Effects{Messages: m.messages, Wake: m.Effects.Wake}
	if m.Effects.Persist != (elector.Terms{}) {
		m.disk.Terms = m.Effects.Persist
		if m.Effects.Accept.LSN != (lsn.LSN{}) {
			m.disk.Record = m.Effects.Accept
		}
		eff.Persist = m.disk
	}
	if t := m.Effects.Transitions; len(t) > 0 {
		eff.Why = t[len(t)-1].Reason.String()
	}
	return eff
}

// Input is an input in the elector's own words.
func Input(in algorithm.Input) elector.Input {
	switch in := in.(type) {
	case algorithm.Received:
		return elector.Received{From: in.From, Identity: in.Identity,
			Message: in.Message.(Message).Message}
	case algorithm.Start:
		disk, _ := in.Disk.(Disk)
		return elector.Start{Term: disk.Terms.Entered, Reserved: disk.Terms.Reserved,
			Record: disk.Record}
	}
	return in.(elector.Input)
}

// View is whom the elector follows, or that it leads.
func (m *Machine) View() algorithm.View {
	s := m.State()
	v := algorithm.View{Role: s.Role, Leader: s.Follower.Leader, Term: s.Term}
	switch {
	case s.Role == elector.Leader:
		v.Leader = m.self
	case v.Leader != "":
		v.Term = s.Follower.LeaderTerm
	}
	return v
}

package spec

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// promises tracks, from the messages alone and in true time, what a voter has promised and for whom
// it voted.
type promises struct {
	heard []heard                          // what it may still answer, oldest first
	bound pledge                           // its newest promise
	given map[elector.NodeID]time.Duration // by leader: the end of its newest promise
	voted map[elector.NodeID]lsn.Term      // by candidate: the newest term in which it voted for it
}

// heard is a proposal or heartbeat as a voter heard it.
type heard struct {
	from     elector.NodeID
	kind     elector.Kind
	term     lsn.Term
	sentAt   elector.Time
	until    time.Duration // end of the promise that a yes to it makes
	conflict pledge        // what bound the voter to another node at that time; zero for nothing
}

// pledge is a promise to vote for nobody else.
type pledge struct {
	to    elector.NodeID
	term  lsn.Term
	until time.Duration
}

// binds reports whether it keeps a voter from supporting id at now.
func (p *pledge) binds(now time.Duration, id elector.NodeID) bool {
	return p.to != "" && p.to != id && p.until > now
}

// hears notes the input of a step. A promise ends early by a proven death, by a cession, or
// because a quorum has elected another node since.
func (p *promises) hears(s *Step, in elector.Input) {
	now := s.Now
	switch in := in.(type) {
	case elector.Died:
		if p.bound.to == in.Peer {
			p.bound = pledge{}
		}
	case elector.Carry:
		p.carries(s, in)
	case elector.Received:
		m := &in.Message
		switch m.Kind {
		case elector.LeadershipCession:
			if p.bound.to == in.From && p.bound.term <= m.Term {
				p.bound = pledge{}
			}
			for i := range p.heard { // a yes that still waits for the disk promises nothing
				if h := &p.heard[i]; h.from == in.From && h.term <= m.Term {
					h.until = min(h.until, now)
				}
			}
			return
		case elector.LeaderHeartbeat:
			if p.bound.to != in.From && p.bound.term < m.Term {
				p.bound = pledge{}
			}
		case elector.ElectionProposal:
		default:
			return
		}
		// §6.1: the promise that a yes to this makes, on the voter's own clock.
		until := s.Clock.When(s.State.Now.Add(s.Timing.Promise()))
		h := heard{from: in.From, kind: m.Kind, term: m.Term, sentAt: m.SentAt, until: until}
		// The candidate of a term that another leads in is not elected in it.
		harmless := m.Kind == elector.LeaderHeartbeat && p.bound.term == m.Term
		if p.bound.binds(now, in.From) && !harmless {
			h.conflict = p.bound
		}
		p.heard = slices.DeleteFunc(p.heard, func(h heard) bool { return h.until <= now })
		p.heard = append(p.heard, h)
	}
}

// carries notes a beat, which makes the promise of a heartbeat that came then, if the voter
// follows: §16.3. It breaks no promise to another, as remembers finds out.
func (p *promises) carries(s *Step, in elector.Carry) {
	if in.At == 0 || s.State.Promise.To != in.Peer || p.bound.binds(s.Now, in.Peer) {
		return
	}
	if p.bound.to != in.Peer || p.bound.until <= s.Now {
		p.bound = pledge{}
	}
	until := max(p.bound.until, s.Clock.When(in.At.Add(s.Timing.Promise())))
	p.bound = pledge{in.Peer, max(p.bound.term, in.Term), until}
	if p.given == nil {
		p.given, p.voted = map[elector.NodeID]time.Duration{}, map[elector.NodeID]lsn.Term{}
	}
	p.given[in.Peer] = max(p.given[in.Peer], until)
}

// supports counts a yes: its promise runs from when the question was heard. A
// question may have been heard twice, and answered only the second time.
func (n *node) supports(
	now time.Duration, to elector.NodeID, asked elector.Kind, m *elector.Message,
) *Violation {
	p := &n.promises
	if p.given == nil {
		p.given, p.voted = map[elector.NodeID]time.Duration{}, map[elector.NodeID]lsn.Term{}
	}
	if asked == elector.ElectionProposal {
		p.voted[to] = m.ProposedTerm
	}
	var broken pledge
	for _, h := range p.heard {
		if h.from != to || h.kind != asked || h.sentAt != m.SentAt {
			continue
		}
		if h.conflict != (pledge{}) {
			broken = h.conflict
			continue
		}
		p.given[to] = max(p.given[to], h.until)
		term := m.Term
		if p.bound.to == to && p.bound.until > now {
			term = max(term, p.bound.term) // §7.10
		}
		p.bound = pledge{to, term, h.until}
		return nil
	}
	if broken == (pledge{}) {
		return nil
	}
	return Broken("promise", "%s supported %s in term %d, "+
		"but was bound to %s of term %d until %s, and it is %s",
		n.id, to, m.Term, broken.to, broken.term, broken.until, now)
}

// wouldVote checks a yes to scouting: the voter is free to vote so now. It binds nobody.
func (n *node) wouldVote(now time.Duration, to elector.NodeID, m *elector.Message) *Violation {
	b := &n.promises.bound
	if m.ProposedTerm > n.voteTerm && !b.binds(now, to) {
		return nil
	}
	return Broken("scouting", "%s would vote for %s in term %d, but has voted in term %d, and is "+
		"bound to %q of term %d until %s, and it is %s",
		n.id, to, m.ProposedTerm, n.voteTerm, b.to, b.term, b.until, now)
}

// remembers checks that a machine that takes part knows what its node has promised, or is under
// an embargo for as long.
func (n *node) remembers(s *Step) *Violation {
	b, p := &n.promises.bound, &s.State.Promise
	if s.State.Role == elector.Dormant || b.to == "" || b.until <= s.Now ||
		s.Clock.When(s.State.EmbargoEnd) >= b.until ||
		p.To == b.to && p.Term >= b.term && s.Clock.When(p.Until) >= b.until {
		return nil
	}
	return Broken("promise", "%s is bound to %s of term %d until %s, "+
		"but its machine says to %q of term %d until %s",
		n.id, b.to, b.term, b.until, p.To, p.Term, s.Clock.When(p.Until))
}

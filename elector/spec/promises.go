package spec

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// promises counts, from the messages alone and in simulated time, what each voter
// has promised and for whom it voted. What a machine believes is never asked, so a
// machine that counts wrongly is found out.
type promises struct {
	quorum int
	voters map[elector.NodeID]*voter
	order  []*voter
}

// voter is what one voter has said.
type voter struct {
	id    elector.NodeID
	heard []heard                          // what it may still answer, oldest first
	bound pledge                           // its newest promise
	given map[elector.NodeID]time.Duration // by leader: the end of its newest promise
	voted map[elector.NodeID]lsn.Term      // by candidate: the newest term in which it voted for it
}

// heard is a proposal or heartbeat as a voter heard it.
type heard struct {
	from     elector.NodeID
	kind     elector.Kind
	sentAt   elector.Time
	until    time.Duration // end of the promise that a yes to it makes
	conflict pledge        // what bound the voter to another when it heard it; zero for nothing
}

// pledge is a promise to vote for nobody else.
type pledge struct {
	to    elector.NodeID
	term  lsn.Term
	until time.Duration
}

func newPromises(cfg elector.Config) *promises {
	p := &promises{quorum: cfg.QuorumSize(), voters: map[elector.NodeID]*voter{}}
	for _, id := range cfg.Voters {
		v := &voter{id: id}
		v.given, v.voted = map[elector.NodeID]time.Duration{}, map[elector.NodeID]lsn.Term{}
		p.voters[id] = v
		p.order = append(p.order, v)
	}
	return p
}

// wiped notes that a voter lost its disk, and so the terms in which it voted.
func (p *promises) wiped(id elector.NodeID) {
	if v := p.voters[id]; v != nil {
		clear(v.voted)
	}
}

// hears notes an input to a voter; until is the end of the promise that it would
// make now.
func (p *promises) hears(
	now time.Duration, id elector.NodeID, in elector.Input, until time.Duration,
) {
	v := p.voters[id]
	if v == nil {
		return
	}
	switch in := in.(type) {
	case elector.Died:
		if v.bound.to == in.Peer {
			v.bound = pledge{}
		}
	case elector.Received:
		v.receives(now, in.From, &in.Message, until)
	}
}

func (v *voter) receives(
	now time.Duration, from elector.NodeID, m *elector.Message, until time.Duration,
) {
	switch m.Kind {
	case elector.LeadershipCession:
		if v.bound.to == from && v.bound.term <= m.Term {
			v.bound = pledge{}
		}
		return
	case elector.LeaderHeartbeat:
		if v.bound.to != from && v.bound.term < m.Term {
			v.bound = pledge{} // a quorum elected another since, so that lease is over
		}
	case elector.ElectionProposal:
	default:
		return
	}
	h := heard{from: from, kind: m.Kind, sentAt: m.SentAt, until: until}
	// The candidate of a term that another leads in is not elected in it.
	harmless := m.Kind == elector.LeaderHeartbeat && v.bound.term == m.Term
	if v.bound.to != from && v.bound.until > now && !harmless {
		h.conflict = v.bound
	}
	v.heard = slices.DeleteFunc(v.heard, func(h heard) bool { return h.until <= now })
	v.heard = append(v.heard, h)
}

// sent checks and counts what a voter says.
func (p *promises) sent(now time.Duration, id elector.NodeID, e *elector.Envelope) *Violation {
	v, m := p.voters[id], &e.Message
	switch {
	case v == nil:
	case m.Kind == elector.HeartbeatAck:
		return v.promises(now, e.To, elector.LeaderHeartbeat, m)
	case m.Kind == elector.ElectionScoutingResponse && m.WillVote:
		return v.wouldVote(now, e.To, m)
	case m.Kind == elector.ElectionProposalResponse && m.WillVote:
		v.voted[e.To] = m.ProposedTerm
		return v.promises(now, e.To, elector.ElectionProposal, m)
	}
	return nil
}

// promises counts a yes: its promise runs from when the question was heard. A
// question may have been heard twice, and answered only the second time.
func (v *voter) promises(
	now time.Duration, to elector.NodeID, asked elector.Kind, m *elector.Message,
) *Violation {
	var broken pledge
	for _, h := range v.heard {
		if h.from != to || h.kind != asked || h.sentAt != m.SentAt {
			continue
		}
		if h.conflict != (pledge{}) {
			broken = h.conflict
			continue
		}
		v.given[to] = max(v.given[to], h.until)
		term := m.Term
		if v.bound.to == to && v.bound.until > now {
			term = max(term, v.bound.term) // §7.10
		}
		v.bound = pledge{to, term, h.until}
		return nil
	}
	if broken != (pledge{}) {
		return Broken("promise", "%s supported %s in term %d, "+
			"but was bound to %s of term %d until %s, and it is %s",
			v.id, to, m.Term, broken.to, broken.term, broken.until, now)
	}
	return nil
}

// wouldVote checks a yes to scouting: the voter is free to vote so now. It binds nobody.
func (v *voter) wouldVote(now time.Duration, to elector.NodeID, m *elector.Message) *Violation {
	for _, term := range v.voted {
		if m.ProposedTerm <= term {
			return Broken("scouting", "%s would vote for %s in term %d, but has voted in term %d",
				v.id, to, m.ProposedTerm, term)
		}
	}
	if v.bound.to != "" && v.bound.to != to && v.bound.until > now {
		return Broken("scouting", "%s would vote for %s in term %d, "+
			"but is bound to %s of term %d until %s, and it is %s",
			v.id, to, m.ProposedTerm, v.bound.to, v.bound.term, v.bound.until, now)
	}
	return nil
}

// remembers checks that a machine knows what its node has promised: until is the end of the
// promise and term its term as the machine has them, and of the embargo if that is later.
func (p *promises) remembers(
	now time.Duration, id, to elector.NodeID, term lsn.Term, promise, embargo time.Duration,
) *Violation {
	v := p.voters[id]
	if v == nil || v.bound.to == "" || v.bound.until <= now || embargo >= v.bound.until {
		return nil
	}
	if to != v.bound.to || term < v.bound.term || promise < v.bound.until {
		return Broken("promise", "%s is bound to %s of term %d until %s, "+
			"but its machine says to %q of term %d until %s",
			id, v.bound.to, v.bound.term, v.bound.until, to, term, promise)
	}
	return nil
}

// backs checks that a quorum's promises last as long as a lease that is valid now.
func (p *promises) backs(now time.Duration, id elector.NodeID, until time.Duration) *Violation {
	backing := 0
	for _, v := range p.order {
		if v.id == id || v.given[id] >= until {
			backing++
		}
	}
	if until <= now || backing >= p.quorum {
		return nil
	}
	return Broken("lease", "%s has a lease until %s, "+
		"but the promises of only %d voters last as long, not %d",
		id, until, backing, p.quorum)
}

// elected checks that a quorum voted for a leader in its very term.
func (p *promises) elected(id elector.NodeID, term lsn.Term) *Violation {
	votes := 0
	for _, v := range p.order {
		if v.id == id || v.voted[id] == term {
			votes++
		}
	}
	if votes >= p.quorum {
		return nil
	}
	return Broken("votes", "%s leads in term %d with %d votes of %d", id, term, votes, p.quorum)
}

package elector

import "github.com/bmqelect/bmqelect/scouting"

// confirming is what a leader knows of the proofs that it is asked for: §7.13.
type confirming struct {
	Asked  Time            // when the newest was asked for; 0 once it is there
	Round  Time            // when the round for it begins; 0 once it has begun
	Unsure scouting.Voters // whose newest ack proves nothing: see noteSure
}

// Confirmable returns nil if Confirm would begin a round now. Otherwise it says why not:
// ErrNotLeader, or what the election lacks for a proof.
func (m *Machine) Confirmable() error {
	if m.state.Role != Leader {
		return ErrNotLeader
	}
	return m.keepsVotes()
}

// confirm begins a round one nanosecond from now. So the send time of its heartbeats is above that
// of each heartbeat that was sent before the caller asked, even if the clock did not move between.
// Calls of one moment share a round.
func (m *Machine) confirm() {
	if m.Confirmable() == nil {
		m.state.Leader.Confirm.Asked = m.state.Now
		m.state.Leader.Confirm.Round = m.state.Now + 1
	}
}

// noteSure notes whether a voter's ack proves that it has voted in no higher term. That of a voter
// which may have done so before it crashed proves nothing; neither does that of a voter without a
// data directory, which forgets its votes. If there is no quorum without such voters, the leader
// re-affirms itself above the terms in which they may have voted.
func (m *Machine) noteSure(from NodeID, identity Identity, voter int, msg *Message) {
	c, by := &m.state.Leader.Confirm, &m.state.By[voter]
	if msg.SentAt < by.Echo {
		return // an older ack
	}
	by.Echo = msg.SentAt
	c.Unsure = c.Unsure.Without(voter)
	if msg.Entered > msg.Term || identity == (Identity{}) {
		c.Unsure = c.Unsure.With(voter)
	}
	if c.Asked == 0 {
		return
	}
	if m.Confirmed() > c.Asked {
		c.Asked = 0
		return
	}
	sure := 0
	for v := range m.set.voters {
		if m.supports(v) && !c.Unsure.Has(v) {
			sure++
		}
	}
	if msg.Entered > msg.Term && sure < m.set.quorum {
		m.reaffirmAbove(from, &Message{Kind: msg.Kind, Term: msg.Entered})
	}
}

// Confirmed is the send time of the newest heartbeat which proves, without the rate of any clock,
// that nobody else had been elected in a higher term when it was sent: a quorum has acked it and
// had voted in no higher term then. Without such a heartbeat it is 0, and also while this leader
// does not know the newest record; Never if this node is the only voter. A caller that asked
// before that time, in the term that the node still leads in, has its proof.
func (m *Machine) Confirmed() Time {
	if !m.inSync() {
		return 0
	}
	var acks support
	for v := range m.state.By {
		if !m.state.Leader.Confirm.Unsure.Has(v) {
			acks[v] = m.state.By[v].Support
		}
	}
	return acks.quorumAt(m.set.self, len(m.set.voters), m.set.quorum)
}

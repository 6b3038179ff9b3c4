package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/lsn"
)

// TestAMemberCannotUseUpTheTerms: for an hour, forty times a second, a broken member sends the
// highest term to which one message may raise this node. Heartbeats and proposals raise the term by
// the bound of a minute each minute. Refusals raise the floor by one such bound in all.
func TestAMemberCannotUseUpTheTerms(t *testing.T) {
	bounds := DefaultBounds()
	receive := func(kind Kind) func(*Machine, lsn.Term) {
		return func(m *Machine, term lsn.Term) {
			m.Step(m.state.Now, 1, Received{From: "b", Message: Message{Kind: kind, Term: term}})
		}
	}
	for _, c := range []struct {
		name        string
		say         func(*Machine, lsn.Term)
		least, most lsn.Term
	}{
		{"heartbeat", receive(LeaderHeartbeat), 59 * bounds.Climb, 61 * bounds.Climb},
		{"proposal", receive(ElectionProposal), 59 * bounds.Climb, 61 * bounds.Climb},
		{"refusal", func(m *Machine, term lsn.Term) { m.learn("b", &Message{Term: term}) },
			bounds.Climb, bounds.Climb},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := started(t)
			height := func() lsn.Term { return max(m.state.Term, m.state.RefusedTerm) }
			for range 3600 {
				m.Step(m.state.Now.Add(time.Second), 1, Tick{})
				for range 40 {
					c.say(m, height()+bounds.Leap)
				}
			}
			require.GreaterOrEqual(t, height(), c.least)
			require.LessOrEqual(t, height(), c.most)
			require.False(t, m.leaps("c", &Message{Term: m.state.Term + 1}), "elections go on")
		})
	}
}

// TestAFloorIsInReach: a broken member has raised the floor of a node as far as it can. Within a
// minute a node that has heard nothing of that votes for it.
func TestAFloorIsInReach(t *testing.T) {
	bounds := DefaultBounds()
	m := started(t)
	proposal := Message{Kind: ElectionProposal, Term: bounds.Climb}
	for range bounds.Climb/bounds.Leap - 1 {
		m.Step(m.state.Now.Add(time.Second), 1, Received{From: "c", Message: proposal})
		require.Zero(t, m.state.Vote)
	}
	m.Step(m.state.Now.Add(time.Second), 1, Received{From: "c", Message: proposal})
	require.Equal(t, NodeID("c"), m.state.Vote)
}

// started returns a machine that has found no leader in its initial wait.
func started(t *testing.T) *Machine {
	m, err := New(Config{Self: "a", Voters: []NodeID{"a", "b", "c"}, Timing: Article()})
	require.NoError(t, err)
	m.Step(Time(time.Second), 1, Start{})
	m.Step(Time(time.Minute), 1, LinkUp{Peer: "b"})
	m.Step(Time(time.Minute), 1, LinkUp{Peer: "c"})
	return m
}

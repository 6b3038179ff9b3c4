package multipaxos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	mp "github.com/bmqelect/bmqelect/internal/lab/algorithm/multipaxos"
)

// A Nack that comes when its receiver has heard of another leader begins nothing.
func TestNackComesLate(t *testing.T) {
	m := mp.MultiPaxos.New(algorithm.Config{Order: []algorithm.NodeID{"a", "b", "c"},
		Elector: elector.Config{Self: "a", Quorum: 1, Timing: elector.Article()}})
	round := m.Step(0, 0, algorithm.Start{}).Wake
	m.Step(round, 0, elector.Tick{})
	hears := func(msg algorithm.Message) algorithm.Effects {
		return m.Step(round, 0, algorithm.Received{From: "b", Message: msg})
	}
	require.Contains(t, hears(mp.Nack{Promise: mp.Ballot{N: 1, Pid: 1}}).Why, "Nack")
	hears(mp.HBReply{Round: 2, Leader: mp.Ballot{N: 3, Pid: 2}})
	require.Empty(t, hears(mp.Nack{Promise: mp.Ballot{N: 4, Pid: 1}}).Why)
}

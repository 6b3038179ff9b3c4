package bully_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
)

// A Return to a call of the life before does not answer one of this life.
func TestCallsOfTwoLivesHaveOtherNumbers(t *testing.T) {
	cfg := algorithm.Config{Order: []algorithm.NodeID{"a", "b"},
		Elector: elector.Config{Self: "b", Timing: elector.Article()}}
	number := func(entropy uint64) uint64 {
		m := bully.Strict.New(cfg)
		wake := m.Step(0, entropy, algorithm.Start{}).Wake
		return m.Step(wake, 0, elector.Tick{}).Messages[0].Message.(bully.Call).Number
	}
	require.NotEqual(t, number(1<<60), number(2<<60))
}

package bully_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
)

var variants = map[string]algorithm.Algorithm{
	"bully": bully.Bully, "bully-strict": bully.Strict, "bully-uuid": bully.UUID,
}

// TestScripts plays the files of testdata: "bully a b c" makes a cluster of that algorithm,
// a the highest, with a heartbeat every 500ms and T_a of 1s.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s *script.Script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "play" {
				return s.Play(d.Input)
			}
			var names []algorithm.NodeID
			for _, arg := range d.CmdArgs {
				names = append(names, algorithm.NodeID(arg.Key))
			}
			s = script.New(variants[d.Cmd], elector.Article(), names...)
			return ""
		})
	})
}

// A Return to a call of the life before does not answer one of this life.
func TestCallsOfTwoLivesHaveOtherNumbers(t *testing.T) {
	cfg := algorithm.Config{Order: []algorithm.NodeID{"a", "b"},
		Elector: elector.Config{Self: "b", Timing: elector.Article()}}
	number := func(entropy uint64) uint64 {
		m := bully.Strict.New(cfg)
		wake := m.Step(0, entropy, algorithm.Start{}).Wake
		return m.Step(wake, 0, elector.Tick{}).Messages[0].Message.(bully.AreYouUp).Number
	}
	require.NotEqual(t, number(1<<60), number(2<<60))
}

package raft_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
)

var variants = []algorithm.Algorithm{raft.Basic, raft.WithPreVote, raft.WithCheckQuorum}

// timing makes E one second, and so a timeout 1 s plus what is drawn.
var timing = elector.Timing{HeartbeatBroadcast: 500 * time.Millisecond, HeartbeatMissCount: 2}

// TestScripts plays testdata: a variant's name with its voters makes a new cluster, and play is
// the language of package script.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s *script.Script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "play" {
				return s.Play(d.Input)
			}
			i := slices.IndexFunc(variants, func(a algorithm.Algorithm) bool { return a.Name == d.Cmd })
			if i < 0 {
				d.Fatalf(t, "there is no variant %q", d.Cmd)
			}
			var voters []algorithm.NodeID
			for _, arg := range d.CmdArgs {
				voters = append(voters, algorithm.NodeID(arg.Key))
			}
			s = script.New(variants[i], timing, voters...)
			return ""
		})
	})
}

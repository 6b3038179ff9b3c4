package ring_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ring"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
)

var rings = map[string]algorithm.Algorithm{"ring": ring.Ring, "ring-list": ring.List}

// TestScripts plays the files of testdata: "ring a b c" makes a cluster of that algorithm, a
// the highest; on the ring b follows on a, however high they are.
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
			s = script.New(rings[d.Cmd], elector.Article(), names...)
			return ""
		})
	})
}

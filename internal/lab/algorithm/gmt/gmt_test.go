package gmt_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/gmt"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
)

// TestScripts plays the files of testdata: "gmt a b c" makes a cluster in the order of the
// configuration, with HBT 500ms and RTT 1s.
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
			s = script.New(gmt.GMT, elector.Article(), names...)
			return ""
		})
	})
}

package etcdlease_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
)

var timing = elector.Timing{HeartbeatBroadcast: time.Second, HeartbeatMissCount: 5}

// TestScripts plays the files of testdata: "members a b c" makes a cluster, with
// a TTL of 5s.
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
			s = script.New(etcdlease.EtcdLease, timing, names...)
			return ""
		})
	})
}

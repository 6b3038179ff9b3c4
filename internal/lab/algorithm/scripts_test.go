package algorithm_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
)

// timings are the timers in the scripts of a folder. The others have the article's.
var timings = map[string]elector.Timing{
	"ble":        {HeartbeatBroadcast: time.Second, HeartbeatMissCount: 1},            // rounds of 1s
	"etcdlease":  {HeartbeatBroadcast: time.Second, HeartbeatMissCount: 5},            // TTL 5s
	"hashicorp":  {HeartbeatBroadcast: time.Second, HeartbeatMissCount: 1},            // H 1s
	"kraft":      {HeartbeatBroadcast: 500 * time.Millisecond, HeartbeatMissCount: 4}, // F 2s
	"kubernetes": {HeartbeatBroadcast: 5 * time.Second, HeartbeatMissCount: 3},        // lease 15s
	"mongodb":    {HeartbeatBroadcast: 2 * time.Second, HeartbeatMissCount: 5},        // T 10s
	"multipaxos": {HeartbeatBroadcast: time.Second, HeartbeatMissCount: 1},            // rounds of 1s
	"omega":      {HeartbeatBroadcast: time.Second, HeartbeatMissCount: 3},            // eta 1s
	"raft":       {HeartbeatBroadcast: 500 * time.Millisecond, HeartbeatMissCount: 2}, // E 1s
	"zookeeper":  {HeartbeatBroadcast: 2 * time.Second, HeartbeatMissCount: 3},        // session 6s
}

// TestScripts plays the scripts in the folders of all algorithms: "ring a b c" makes a cluster
// of the algorithm with that name, a the preferred member, and "play" plays lines; see package
// script. With -rewrite it writes what follows.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("*/testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		folder := strings.Split(filepath.ToSlash(path), "/")[0]
		timing, ok := timings[folder]
		if !ok {
			timing = elector.Article()
		}
		t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
			var s *script.Script
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "play" && folder == "omega" {
					return fold(s.Play(d.Input))
				}
				if d.Cmd == "play" {
					return s.Play(d.Input)
				}
				a, err := replay.SelectAlgorithms(d.Cmd)
				require.NoError(t, err, d.Pos)
				var names []algorithm.NodeID
				for _, arg := range d.CmdArgs {
					names = append(names, algorithm.NodeID(arg.Key))
				}
				s = script.New(a[0], timing, names...)
				return ""
			})
		})
	}
}

// fold joins lines in which a node sends the same message to one after the other.
func fold(text string) string {
	var out []string
	var last string // without the receiver
	for line := range strings.Lines(text) {
		head, tail, sends := strings.Cut(line, " -> ")
		to, message, _ := strings.Cut(tail, ":")
		if key := head + message; sends && key == last {
			joined := &out[len(out)-1]
			*joined = strings.Replace(*joined, ":"+message, " "+to+":"+message, 1)
			continue
		} else if last = ""; sends {
			last = key
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

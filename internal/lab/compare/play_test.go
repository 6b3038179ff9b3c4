package compare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
)

// The timers with which algorithms play: equal ones of the network, and own ones as their sources
// have them for links of 1 ms to 1.5 ms, and of 50 ms to 75 ms of which 2 % are lost.
func TestTimersOfCells(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	inactivity := func(e elector.Config) time.Duration { return e.Timing.Inactivity() }
	answer := func(e elector.Config) time.Duration { return e.Timing.ElectionResult }
	detect := func(e elector.Config) time.Duration { return e.QoS.Detect }
	for name, c := range map[string]struct {
		of         func(elector.Config) time.Duration
		equal      time.Duration
		short, far time.Duration
	}{
		"bmqelect":  {inactivity, 1500 * ms, 60 * ms, 3500 * ms},     // profiles lan and wan
		"gmt":       {inactivity, 1500 * ms, 270 * ms, 13500 * ms},   // 3 x 20 x RTT
		"bully":     {answer, 1000 * ms, 4 * ms, 151 * ms},           // there, back, and 1 ms
		"ring":      {answer, 1000 * ms, 3 * ms, 150 * ms},           // of it T_r is 3n halves
		"raft":      {inactivity, 1500 * ms, 150 * ms, 750 * ms},     // at least 150 ms
		"raft-etcd": {inactivity, 1500 * ms, 1000 * ms, 1500 * ms},   // at least 1 s
		"omega-lc":  {detect, 1500 * ms, 999_960 * us, 999_960 * us}, // 1 s, in whole thirds
		"ble":       {inactivity, 1500 * ms, 50 * ms, 600 * ms},      // at least 50 ms
	} {
		all, err := replay.SelectAlgorithms(name)
		require.NoError(t, err)
		timer := func(network int, own bool) time.Duration {
			return c.of(Cell{Topologies[0], Networks[network], all[0], own}.scenario().Election)
		}
		require.Equal(t, []time.Duration{c.equal, c.short, c.far},
			[]time.Duration{timer(0, false), timer(0, true), timer(2, true)}, name)
	}
}

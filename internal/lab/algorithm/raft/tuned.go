package raft

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// dissertation has time-outs of 10 to 20 times the one-way latency, and not below the 150 ms to
// 300 ms that it calls conservative (chapter 9). Of heartbeats it says only that they are more
// frequent; here they are five times as frequent.
func dissertation(t elector.Timing, l algorithm.Link) elector.Timing {
	e := max(10*l.Longest(), 150*time.Millisecond)
	t.HeartbeatBroadcast, t.HeartbeatMissCount = e/5, 5
	return t
}

// etcd has its documentation's heartbeats of a round trip and time-outs of 10, and not below the
// defaults, which are said to suit local networks.
func etcd(t elector.Timing, l algorithm.Link) elector.Timing {
	t.HeartbeatBroadcast, t.HeartbeatMissCount = max(2*l.Longest(), 100*time.Millisecond), 10
	return t
}

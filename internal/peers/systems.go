package main

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// system is a column of the table of elections.
type system struct {
	name    string
	program string // the binary beside this one; "" is this one
	kind    string
	period  time.Duration // of heartbeats, or of what a program derives them from; 0: its default
	nodes   int
	// lanes is the number of clusters at a time, to save time: more than one only if an
	// election mostly waits.
	lanes int
	// heartbeat is the mean period of the heartbeats that the timers make.
	heartbeat time.Duration
	values    int // node.Spec.Values
}

// own is the name of this elector, with which all others are compared: the first of systems.
const own = "bmqelect"

// hashicorp/raft sends a heartbeat after a tenth to a fifth of its time-out. Its floor is
// 5 ms. With 10 ms, the least time to live of etcd's sessions is one second, the
// shortest that it grants.
var systems = []system{
	{own, "", "lan", 0, 5, 1, 15 * time.Millisecond, 0},
	{"raft", "raft", "", 0, 5, 4, 150 * time.Millisecond, 0},
	{"raft-50ms", "raft", "", 50 * time.Millisecond, 5, 1, 7500 * time.Microsecond, 0},
	{"raft-5ms", "raft", "", 5 * time.Millisecond, 5, 1, 750 * time.Microsecond, 0},
	{"etcd", "etcd", "leader", 0, 3, 4, 100 * time.Millisecond, 0},
	{"etcd-session", "etcd", "session", 10 * time.Millisecond, 3, 4, 10 * time.Millisecond, 0},
}

// shortest is the least heartbeat period at which this elector can be measured. The lease lasts
// for less than three periods; with shorter ones it ends while a process waits for a core.
const shortest = time.Millisecond

// equal is this elector with as many nodes as another system, and with its heartbeat period.
func equal(other system) system {
	return system{own, "", "article", other.heartbeat, other.nodes, 1, other.heartbeat, 0}
}

// profiles are this elector with each of its profiles.
func profiles() (all []system) {
	for _, name := range elector.ProfileNames() {
		timing, _ := elector.Profile(name)
		all = append(all, system{own, "", name, 0, 5, 1, timing.HeartbeatBroadcast, 0})
	}
	return all
}

package main

import (
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// question is what a worker asks the leader, again and again: what am I to do?
type question struct {
	Node       cluster.NodeID `json:"node"`
	Leaving    bool           `json:"leaving,omitempty"` // wants nothing any more
	Partitions []standing     `json:"partitions"`        // how it stands, one for each
}

// standing is a worker's relation to a partition. The newest LSN that it has
// accepted proves what has ended: an assignment which is not in force, with an LSN
// no newer than that, will never be in force on this worker again.
type standing struct {
	Newest  lsn.LSN `json:"newest"`
	InForce bool    `json:"in_force,omitempty"` // the newest is
}

// answer is what a leader grants a worker: to work on partitions, each under the
// LSN of its assignment, until Grant after the worker had begun to ask. So it does
// not matter how long question and answer were on their way.
type answer struct {
	Stamp    lsn.LSN         `json:"stamp"` // of this answer
	Grant    time.Duration   `json:"grant_ns"`
	Assigned map[int]lsn.LSN `json:"assigned"`
}

package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// Status is a snapshot of a machine for people and programs.
type Status struct {
	Role   Role
	Term   lsn.Term // highest voted in, proposed or followed; for a leader the term that it leads in
	Leader NodeID   // the leader that this node follows or is; "" for none
	// IndirectLeader is a leader that this node knows only from another node's
	// refusal. It follows nobody then.
	IndirectLeader NodeID
	Tentative      NodeID  // whom this node voted for and has not heard a heartbeat from yet
	LSN            lsn.LSN // newest issued (leader) or seen
	LeaseEnd       Time    // leader: until when the lease runs; Never without one in force by design; 0 otherwise
	LeaderSeen     Time    // follower: when the last heartbeat came; 0 if none
	PromisedTo     NodeID  // holder of the outstanding promise; "" for none
	PromiseEnd     Time
	EmbargoEnd     Time          // restarted voter: until when it grants nothing; 0 for none
	Scouting       bool          // whether a scouting round is open
	NextStand      time.Duration // follower without leader: until it may stand; 0 otherwise
	Supporters     []NodeID      // leader: voters whose acks still hold its lease up, itself included; sorted
}

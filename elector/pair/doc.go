// Package pair is the liveness of a pair of nodes. One beat a period says of a whole process what
// the heartbeats of each of its elections would say (protocol.md, §16). A beat has a direction, and
// the two directions know nothing of each other: at one end is a Follower, which follows elections
// that the other node leads, at the other end a Leader.
//
// Both are pure and not safe for concurrent use, and both last for one session, which is a link
// between two processes: in a new session both begin empty.
package pair

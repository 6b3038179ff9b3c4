// Package elector is the election protocol: who leads, and what every node may
// promise, vote and believe. It is a Raft-style elector with PreVote, the
// BlazingMQ variant, hardened as docs/protocol.md says (§12). The section sign in a
// comment always names a rule of that page: the one that the code there implements.
//
// A Machine is pure and deterministic. It has no goroutine, clock, randomness,
// I/O, logger or lock: each Step takes the time and entropy, and returns Effects
// for the driver to carry out. The same machine runs in the daemon, in the
// simulator and in the search of its state space. A Machine is not safe for
// concurrent use: one goroutine owns it.
//
// What always holds: at most one leader per term; at most one valid lease at a
// time, given clock rates within the configured drift; a node votes at most
// once per term and its term never goes down, given that its disk keeps what
// Effects.Persist asked for; nothing that Received hands over can panic.
//
// The package is not a failure detector, a membership service or a log: it
// takes its voters from the configuration and replicates nothing.
package elector

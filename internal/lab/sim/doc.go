// Package sim runs a whole cluster of electors' machines in one goroutine on a virtual
// clock and a virtual network.
//
// What is the real code, unchanged: the election itself, package elector with all
// that it imports. What is modelled again here, in a few hundred lines, and may differ
// from what package netmesh and package cluster do:
//
//   - link.go: connections, how their ends find out that they are gone, and the proof
//     of a process's death;
//   - network.go: what happens to a message on its way, and to a cut direction;
//   - store.go: where the store of an algorithm is, and its clients' connections;
//   - node.go: a process with its disk, and its guarded work;
//   - process.go: how processes start and end, and what a crash leaves of a write.
//
// The nodes may run another algorithm (Config.Algorithm) through the seam of package
// algorithm. What only the elector has, its invariants, lease and guarded work, is in
// elector.go.
//
// The same scenarios run on real processes too (bmqnode replay --live): that holds
// the model against the real code.
//
// One seed fixes everything that happens: the same Config, calls and seed give the
// same events, byte for byte, on every machine. Nothing reads a wall clock, ranges
// over a map into output, or computes time in floating point.
//
// The network is a full mesh of virtual TCP connections with faults that TCP does not
// have (loss, duplication, reordering, lateness), because the machine must stand
// them. Processes crash, with or without what was being written to disk, pause,
// resume, stop and restart; their clocks run at rates of their own. A Checker looks at
// every single event, and a run ends at the first violation.
//
// An hour of five nodes is some hundred thousand events: what happens to every message allocates
// nothing but the message and its box (queue.go).
//
// A Sim is not safe for concurrent use.
package sim

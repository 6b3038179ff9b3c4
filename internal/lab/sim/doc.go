// Package sim runs a whole cluster of elector machines, unchanged, in one
// goroutine on a virtual clock and a virtual network.
//
// One seed fixes everything that happens: the same Config, calls and seed give
// the same events, byte for byte, on every machine. Nothing reads a wall clock,
// ranges over a map into output, or computes time in floating point.
//
// The network is a full mesh of virtual TCP connections with faults that TCP
// does not have (loss, duplication, reordering, lateness), because the machine
// must stand them. Processes crash, with or without what was being written to
// disk, pause, resume, stop and restart; their clocks run at rates of their own.
// A Checker looks at every single event, and a run ends at the first violation.
//
// A Sim is not safe for concurrent use.
package sim

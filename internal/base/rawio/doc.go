// Package rawio transfers bytes to and from descriptors that do not block, on Linux, by
// system calls of which Go's scheduler is not told. Package os and net announce every call,
// as it might block. In a process that is idle but for heartbeats each announcement wakes
// the runtime's monitor thread, which costs more than the call: measured on two cores, a
// quarter of the CPU time of such a process.
//
// The calls return at once, so the scheduler has no need to know. What cannot go on yet
// waits in the runtime's poller, with the deadlines of the descriptor, as usual.
package rawio

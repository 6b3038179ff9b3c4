// Package rawcall makes system calls that never block, without telling Go's scheduler. Any
// other call of a process that was at rest wakes the scheduler's monitor, a thread that then
// looks around every 20 us until the process rests again: on the path of a heartbeat that was
// a third of the wake-ups and a fifth of the CPU time. One call of the other kind on that path
// is enough to wake it.
package rawcall

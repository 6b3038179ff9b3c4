// Package chaos runs whole nodes under random schedules of faults in virtual
// time: real nodes, meshes and data directories, a network in memory that fails
// as a kernel's does, disks that fail, hang, are slow, fill up and tear writes, processes that are
// stopped, killed, closed without waiting and started again, and guarded work
// that does not stop when it is told. A judge looks at all nodes before every
// step that any of them takes. There are only tests in it.
//
// A schedule is drawn from a seed; in half of them the nodes have a second election.
// A run that breaks a rule is shortened, and printed together with the seed and the
// command that runs it again.
package chaos

// Package chaos runs whole nodes under random schedules of faults in virtual
// time: real nodes, meshes and data directories, a network in memory that fails
// as a kernel's does, disks that fail, hang and fill up, processes that are
// stopped, killed, closed without waiting and started again, and guarded work
// that does not stop when it is told. A judge looks at all nodes before every
// step that any of them takes. There are only tests in it.
//
// A schedule is drawn from a seed. A run that breaks a rule is shortened, and
// printed together with the seed and the command that runs it again.
package chaos

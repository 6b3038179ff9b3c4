// Package kerneltest has the tests that expose real processes to faults of the real kernel:
// firewalls, links that go down, connections that are reset, disks that are full, read-only,
// gone or hang, and processes that are stopped, killed or out of memory. They show that a live
// peer is never taken for dead, that a dead one is proven dead, and that two nodes never lead at
// once.
//
// Each voter is a process in its own network namespace. All of them run in a sandbox of network,
// mount and process namespaces, which the kernel removes with all processes in it when the tests
// end, however they end. The tests need Linux, root, ip, ss and iptables; tests of disks need
// FUSE, and ext4 on loop devices. They skip otherwise. There is nothing to import here.
package kerneltest

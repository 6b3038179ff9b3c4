// Package kerneltest holds the tests that put real processes under the real kernel's
// faults: firewalls, links that go down, connections that are reset, disks that are full,
// read-only, gone or hang, processes that are stopped, killed or out of memory. They show that
// a peer that lives is never taken for dead, that one that died is proven dead, and that two
// nodes never lead at once.
//
// Each voter is a process in a network namespace of its own. All of it lives in a
// sandbox: network, mount and process namespaces that the kernel removes, with all
// that runs in them, when the tests end, however they end. The tests need Linux, root,
// ip, ss and iptables, those of disks FUSE and ext4 on loop devices. They skip otherwise.
// There is nothing to import here.
package kerneltest

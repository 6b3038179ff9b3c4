// Package memnet is a network in memory, for tests of whole clusters in the
// virtual time of testing/synctest. It tells apart what a kernel's TCP tells
// apart: an orderly end (io.EOF), a reset (syscall.ECONNRESET), a refused dial
// (syscall.ECONNREFUSED) and a deadline (os.ErrDeadlineExceeded). As in a kernel
// a reset is told once: if a write takes it, a later read returns io.EOF.
//
// Data arrives at once, unless Delay says otherwise, and in order. Buffers are
// bounded: a writer whose reader does not read blocks. Filter puts a firewall
// between two hosts, Stop stops a process. Everything is safe for concurrent
// use. There are no goroutines inside.
package memnet

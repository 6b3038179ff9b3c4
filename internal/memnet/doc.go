// Package memnet is a network in memory, for tests of whole clusters in the
// virtual time of testing/synctest. It tells apart what a kernel's TCP tells
// apart: an orderly end (io.EOF), a reset (syscall.ECONNRESET), a refused dial
// (syscall.ECONNREFUSED) and a deadline (os.ErrDeadlineExceeded).
//
// Data arrives at once and in order. Buffers are bounded: a writer whose reader
// does not read blocks. Everything is safe for concurrent use. There are no
// goroutines inside.
package memnet

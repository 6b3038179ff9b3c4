//go:build !linux || race

package rawcall

import "net"

// Conn returns c: elsewhere no monitor thread is known to cost much, and the race detector sees
// only what package syscall reads and writes.
func Conn(c net.Conn) net.Conn { return c }

//go:build unix

package elector

import (
	"syscall"
	"unsafe"
)

// In the tests of this package the parts of nobody are in memory that cannot be written: a machine
// that writes into a part before it owns it, be it a zero, ends the test with a stack.
func init() {
	memory, err := syscall.Mmap(-1, 0, int(unsafe.Sizeof(*nobody)), syscall.PROT_READ,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	nobody = (*State)(unsafe.Pointer(&memory[0]))
}

//go:build unix

package loop

import (
	"syscall"
	"unsafe"
)

// In the tests of this package nothingRare cannot be written, like nobody in those of package
// elector.
func init() {
	memory, err := syscall.Mmap(-1, 0, int(unsafe.Sizeof(*nothingRare)), syscall.PROT_READ,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	nothingRare = (*rare)(unsafe.Pointer(&memory[0]))
}

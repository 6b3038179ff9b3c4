//go:build !linux

package procs

import "syscall"

// dieWithParent does nothing: there is no such thing here.
func dieWithParent(*syscall.SysProcAttr) {}

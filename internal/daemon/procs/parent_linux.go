package procs

import "syscall"

// dieWithParent lets the kernel end the child when the parent is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

package procs

import "syscall"

// dieWithParent lets the kernel end the child when its parent dies.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

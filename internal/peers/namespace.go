package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// inNamespace marks the program that runs in a network namespace of its own.
const inNamespace = "PEERS_NETNS=1"

// isolate makes this program run again from its start, in a network namespace of its
// own: nothing else uses the loopback interface there, so its counters are those of the
// nodes. more are flags of further namespaces, such as unix.CLONE_NEWNS. It returns an error if
// that is not permitted, and nil within the namespace.
func isolate(more int) error {
	if os.Getenv("PEERS_NETNS") != "" {
		return loopbackUp()
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // a namespace is that of a thread until exec
	defer runtime.UnlockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET | more); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	return syscall.Exec(program, os.Args, append(os.Environ(), inNamespace))
}

func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring the loopback interface up: %w", err)
	}
	return nil
}

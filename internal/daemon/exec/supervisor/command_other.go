//go:build !linux

package supervisor

import (
	"net"
	"syscall"
)

// Command is a command under supervision. There is none on this system.
type Command struct{}

// Evidence holds nothing on this system.
type Evidence struct{}

// Hold does nothing.
func (*Evidence) Hold(net.Conn) error { return nil }

// Start returns ErrUnsupported.
func (*Evidence) Start(Config) (*Command, error) { return nil, ErrUnsupported }

// Main is the supervisor. On this system it can only fail.
func Main([]string) int { return 1 }

// Renew does nothing, as do the others.
func (*Command) Renew() {}

// Signal does nothing.
func (*Command) Signal(syscall.Signal) {}

// Stop does nothing.
func (*Command) Stop() {}

// Kill does nothing.
func (*Command) Kill() {}

// Done is never closed.
func (*Command) Done() <-chan struct{} { return nil }

// Result is empty.
func (*Command) Result() Result { return Result{} }

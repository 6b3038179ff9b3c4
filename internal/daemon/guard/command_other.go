//go:build !linux

package guard

import (
	"net"
	"os"
	"syscall"
)

// Command is a command that runs under a guard. There is none on this system.
type Command struct{}

// Start returns ErrUnsupported.
func Start(Config) (*Command, error) { return nil, ErrUnsupported }

// Evidence holds nothing on this system.
type Evidence struct{}

// Hold does nothing.
func (*Evidence) Hold(net.Conn) error { return nil }

// Start returns ErrUnsupported.
func (*Evidence) Start(Config) (*Command, error) { return nil, ErrUnsupported }

// Main is the guard. On this system it can only fail.
func Main([]string) int { return 1 }

// Holding returns ErrUnsupported.
func Holding(string, string) ([]*os.File, error) { return nil, ErrUnsupported }

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

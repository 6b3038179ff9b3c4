// Package testprocess simulates the process of a node, on a network in memory: a test stops
// it, lets it go on and kills it, as signals do. All tests use it that run whole nodes in
// virtual time.
package testprocess

import (
	"context"
	"errors"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// Process is one process, from its start to its end. All methods are safe for
// concurrent use.
type Process struct {
	net  *memnet.Network
	name string
	host *memnet.Host
	life context.Context
	end  context.CancelFunc
}

// New returns a process that is to run on a host of the network.
func New(net *memnet.Network, host string) *Process {
	p := &Process{net: net, name: host, host: net.Host(host)}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// Context returns the context with which to start the node of the process. It sets Network
// and Dead of s. If Clock is nil it is the time of the bubble, and if Disk is nil it is one
// that does not sync. Once the process is dead nothing is written. Gate is called while the
// process is neither paused nor dead.
func (p *Process) Context(s testhook.Hooks) context.Context {
	s.Network, s.Dead = p.host, p.Killed
	if s.Clock == nil {
		s.Clock = clock.Process()
	}
	if s.Disk == nil {
		s.Disk = testhook.Unsynced
	}
	disk := s.Disk
	s.Disk = func(write func() error) error {
		if p.Killed() {
			return errors.New("the process is no more")
		}
		return disk(write)
	}
	hold := s.Gate
	s.Gate = func() {
		p.Wait()
		if hold != nil && !p.Killed() {
			hold()
		}
	}
	return testhook.With(p.life, s)
}

// Done is closed when the process is killed.
func (p *Process) Done() <-chan struct{} { return p.life.Done() }

// Life returns a context that ends when the process is killed.
func (p *Process) Life() context.Context { return p.life }

// Killed reports whether the process was killed.
func (p *Process) Killed() bool { return p.life.Err() != nil }

// Kill ends the process as SIGKILL does. The caller must still close its node, whose messages
// reach nobody then.
func (p *Process) Kill() {
	p.end()
	p.net.Kill(p.name)
}

// Pause stops the process as SIGSTOP does: none of its calls of the network returns,
// its node decides nothing, and whoever calls Wait waits. Its kernel goes on.
func (p *Process) Pause() { p.host.Stop() }

// Resume lets a paused process go on, as SIGCONT does.
func (p *Process) Resume() { p.host.Continue() }

// Paused reports whether the process is paused.
func (p *Process) Paused() bool { return p.host.Stopped() }

// Wait waits while the process is paused.
func (p *Process) Wait() { p.host.Wait() }

// Clock returns a clock that holds up whoever asks it while the process is paused.
func (p *Process) Clock() clock.Clock { return pausedClock{clock.Process(), p} }

type pausedClock struct {
	clock.Clock
	p *Process
}

// Now waits while the process is paused.
func (c pausedClock) Now() time.Duration {
	c.p.Wait()
	return c.Clock.Now()
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Callbacks are what Run calls. Nil ones are left out.
type Callbacks struct {
	// OnStartedLeading does what only the leader may do. When ctx is canceled it
	// must stop and return: leadership is handed over, or lost, and another node's
	// work waits for that until the lease ends. It may return before; the node then
	// still leads. ctx is the leadership's context.
	OnStartedLeading func(ctx context.Context, l *Leadership)
	// OnStoppedLeading is called once for each OnStartedLeading, after that has
	// returned and the leadership has begun to end. A handover waits for it, too.
	OnStoppedLeading func(l *Leadership)
	// OnNewLeader is called with each new leadership that this node perceives, its
	// own included, never twice with the same. It runs beside the other two.
	OnNewLeader func(Leader)
}

// PanicError is what Run returns when a callback panicked.
type PanicError struct {
	Callback string // its name
	Value    any    // what it panicked with
	Stack    []byte // where
}

// Error says which callback panicked, with what.
func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.Callback, e.Value) }

// Run campaigns in the election, lets the callbacks work while this node leads,
// and campaigns again whenever it has lost leadership, until ctx ends, the election
// is closed, Resign is called, or a callback panics. Then it gives up what it leads
// and returns: the cause of ctx, an error that wraps ErrClosed or ErrResigned or is the
// node's failure, or a *PanicError. On a node that never stands it returns
// ErrNotCandidate at once (use Observe there), and beside another Run ErrCampaigning.
//
// Callbacks must not call Transfer, StepDown, Resign or Close and wait for it: these
// wait for the callbacks. To give up from within, end the ctx of Run.
//
// Callbacks run on goroutines of their own, OnStartedLeading and OnStoppedLeading
// strictly in turn. Run returns after they have; a callback that blocks for ever
// keeps Run, and nothing else: the node hands over when the lease ends.
func (e *Election) Run(ctx context.Context, cb Callbacks) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var news sync.WaitGroup
	defer news.Wait()
	if cb.OnNewLeader != nil {
		news.Go(func() {
			if err := e.reportLeaders(ctx, cb); err != nil {
				cancel(err)
			}
		})
	}
	err := e.campaignAgain(ctx, cb)
	cancel(err)
	return fmt.Errorf("run of node %s in election %q: %w", e.n.cfg.Node, e.g.name, err)
}

// campaignAgain leads again and again until something is wrong.
func (e *Election) campaignAgain(ctx context.Context, cb Callbacks) error {
	l, err := e.Campaign(ctx)
	for err == nil {
		err = l.work(ctx, cb)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			l.Release()
			return err
		}
		l, err = l.Again(ctx)
	}
	return err
}

// work runs the callbacks of one leadership. It ends when the leadership has begun to end,
// which the end of ctx and a panic bring about, and the callbacks have returned; the next
// campaign releases it.
func (l *Leadership) work(ctx context.Context, cb Callbacks) (err error) {
	started := runCallback("OnStartedLeading", func() {
		if cb.OnStartedLeading != nil {
			cb.OnStartedLeading(l.ctx, l)
		}
	})
	var ending <-chan struct{} // of the leadership, once the callback has returned
	for started != nil || l.ctx.Err() == nil {
		select {
		case err = <-started:
			started, ending = nil, l.ctx.Done()
			if err != nil {
				l.giveUp()
			}
		case <-ctx.Done():
			l.giveUp()
			ctx = context.WithoutCancel(ctx) // once is enough
		case <-ending:
		}
	}
	return errors.Join(err, <-runCallback("OnStoppedLeading", func() {
		if cb.OnStoppedLeading != nil {
			cb.OnStoppedLeading(l)
		}
	}))
}

// reportLeaders calls OnNewLeader, never twice with the same.
func (e *Election) reportLeaders(ctx context.Context, cb Callbacks) error {
	var last Leader
	for l := range e.Observe(ctx) {
		if l.Node == "" || l == last {
			continue
		}
		last = l
		if err := <-runCallback("OnNewLeader", func() { cb.OnNewLeader(l) }); err != nil {
			return err
		}
	}
	return nil
}

// runCallback runs a callback on a goroutine of its own, and gives its panic as an error
// when it has ended. A callback that ends its goroutine by runtime.Goexit, as
// t.FailNow does, has ended as well.
func runCallback(name string, f func()) <-chan error {
	ended := make(chan error, 1)
	go func() {
		defer func() {
			var err error
			if v := recover(); v != nil {
				err = &PanicError{Callback: name, Value: v, Stack: debug.Stack()}
			}
			ended <- err
		}()
		f()
	}()
	return ended
}

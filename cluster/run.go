package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Callbacks are what Run calls. Nil ones are left out.
type Callbacks struct {
	// OnStartedLeading does what only the leader may do. When ctx is canceled it
	// must stop and return: leadership is handed over, or lost, and another node's
	// work waits for that until the lease ends. ctx is the leadership's context.
	//
	// If it returns before that, or with an error, the node gives leadership up and
	// does not stand again for a rest of a second, which doubles up to a minute each time
	// unless the work went on for a minute. The error is logged, counted, and shown in
	// GroupStatus; that of ctx is none.
	OnStartedLeading func(ctx context.Context, l *Leadership) error
	// WorkElsewhere says that OnStartedLeading only starts the work: if it returns nil
	// the node leads on. OnStoppedLeading then has to stop the work.
	WorkElsewhere bool
	// OnStoppedLeading is called once for each OnStartedLeading, after that has
	// returned and the leadership has begun to end. A handover waits for it, too.
	OnStoppedLeading func(l *Leadership)
	// OnNewLeader is called with each new leadership that this node perceives, its
	// own included, never twice with the same, and not if nobody leads. It runs beside the
	// other two, before or after them; if it is slow it gets the newest.
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
// is closed, Resign is called, or a callback panics. Then it gives up what it leads.
// From the first Run on, the node stands only while one campaigns, as with Campaign.
//
// It returns nil if ctx has ended, and otherwise an error that wraps ErrClosed or
// ErrResigned, is the node's failure, or a *PanicError; beside another Run
// ErrCampaigning. On a node that is no candidate it calls OnNewLeader only, so that the same
// program can run there, until SetCandidate makes it one.
//
// Callbacks must not call Transfer, StepDown, Resign or Close and wait for it: these
// wait for the callbacks. To give up from within, return.
//
// Callbacks run on goroutines of their own, OnStartedLeading and OnStoppedLeading
// strictly in turn. Run returns after they have; a callback that blocks for ever
// keeps Run, and nothing else: the node hands over when the lease ends.
func (e *Election) Run(ctx context.Context, cb Callbacks) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var news sync.WaitGroup
	defer news.Wait()
	if cb.OnNewLeader != nil {
		news.Go(func() {
			if err := e.reportLeaders(both, cb); err != nil {
				cancel(err)
			}
		})
	}
	err := e.campaignAgain(both, cb)
	if errors.Is(err, ErrNotCandidate) {
		select {
		case <-e.p.Stood:
			err = e.campaignAgain(both, cb)
		case <-both.Done():
			err = context.Cause(both)
		case <-e.p.Gone:
			err = e.p.Ended()
		}
	}
	cancel(err)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return e.failed("run", err)
}

// After work that ended by itself the node does not stand for a while, so that others have
// their turn, and work that fails at once is not begun again without a pause.
const (
	shortestRest = time.Second
	longestRest  = time.Minute
)

// campaignAgain leads again and again until something is wrong, or ctx ends.
func (e *Election) campaignAgain(ctx context.Context, cb Callbacks) error {
	var rest time.Duration
	l, err := e.Campaign(ctx)
	for err == nil {
		began := e.n.loop.Now()
		var ended bool
		var result error
		ended, result, err = l.work(ctx, cb)
		if e.n.loop.Now().Sub(began) >= longestRest {
			rest = 0
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if ended {
			if rest = min(max(2*rest, shortestRest), longestRest); err != nil {
				rest = 0 // nobody campaigns again
			}
			l.noteEnd(result, rest)
		}
		switch {
		case err != nil:
			l.Release()
		case ended:
			l.release(rest)
			l, err = e.Campaign(ctx)
		default:
			l, err = l.Again(ctx)
		}
	}
	return err
}

// work runs the callbacks of one leadership. It returns when the leadership has begun to
// end, which the end of ctx, a panic and work that ended by itself bring about, and the
// callbacks have returned; the next campaign releases it. The work has ended by itself if
// nobody told it to stop, or with a result that is an error; err is a panic.
func (l *Leadership) work(ctx context.Context, cb Callbacks) (ended bool, result, err error) {
	started := runCallback("OnStartedLeading", func() error {
		if cb.OnStartedLeading == nil {
			return nil
		}
		return cb.OnStartedLeading(l.ctx, l)
	})
	var ending <-chan struct{} // of the leadership, once the callback has returned
	for started != nil || l.ctx.Err() == nil {
		select {
		case result = <-started:
			started, ending = nil, l.ctx.Done()
			told := l.ctx.Err() != nil || !l.Valid()
			if told && isOf(result, l.ctx.Err(), context.Cause(l.ctx), ErrNotLeader) {
				result = nil
			}
			elsewhere := cb.WorkElsewhere || cb.OnStartedLeading == nil
			if ended = result != nil || !told && !elsewhere; ended {
				l.giveUp()
			}
		case <-ctx.Done():
			l.giveUp()
			ctx = context.WithoutCancel(ctx) // once is enough
		case <-ending:
		}
	}
	if panicked := (*PanicError)(nil); errors.As(result, &panicked) {
		ended, err = false, result
	}
	return ended, result, errors.Join(err, <-runCallback("OnStoppedLeading", func() error {
		if cb.OnStoppedLeading != nil {
			cb.OnStoppedLeading(l)
		}
		return nil
	}))
}

// isOf reports whether err is one of those, or says so.
func isOf(err error, those ...error) bool {
	return slices.ContainsFunc(those, func(one error) bool { return errors.Is(err, one) })
}

// noteEnd logs and counts that the work of this leadership ended by itself, before the
// node does not stand for the given time.
func (l *Leadership) noteEnd(err error, rest time.Duration) {
	log, text := l.e.n.log.Info, ""
	if err != nil {
		log, text = l.e.n.log.Warn, err.Error()
	}
	log("work ended by itself: this node gives leadership up, and rests",
		"group", l.e.p.Name, "term", l.Term(), "error", text, "rest", rest)
	l.e.p.NoteWorkEnd(text, rest)
}

// reportLeaders calls OnNewLeader, never twice with the same.
func (e *Election) reportLeaders(ctx context.Context, cb Callbacks) error {
	var last Leader
	for l := range e.Observe(ctx) {
		if l.Node == "" || l == last {
			continue
		}
		last = l
		err := <-runCallback("OnNewLeader", func() error {
			cb.OnNewLeader(l)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runCallback runs a callback on a goroutine of its own, and gives what it returned, or its
// panic as an error, when it has ended. A callback that ends its goroutine by
// runtime.Goexit, as t.FailNow does, has ended as well.
func runCallback(name string, f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Callback: name, Value: v, Stack: debug.Stack()}
			}
			ended <- err
		}()
		err = f()
	}()
	return ended
}

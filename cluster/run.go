package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
)

// Callbacks are the functions that Run calls. Each may be nil.
type Callbacks struct {
	// OnStartedLeading does the work that only the leader may do. ctx is the leadership's context.
	// When it is canceled, because leadership is handed over or lost, the callback must stop and
	// return: the work of the next leader waits for it until the lease ends.
	//
	// If it returns before that, or with an error, the node gives leadership up and does not stand
	// again for a rest. The rest is a second long, and doubles each time up to a minute; it is a
	// second again after work that went on for a minute. The error is logged, counted and shown in
	// GroupStatus, unless it is that of ctx.
	OnStartedLeading func(ctx context.Context, l *Leadership) error
	// WorkElsewhere says that OnStartedLeading only starts the work: if it returns nil the node
	// leads on. OnStoppedLeading must then stop the work.
	WorkElsewhere bool
	// OnStoppedLeading is called once for each OnStartedLeading, after that has
	// returned and the leadership has begun to end. A handover waits for it, too.
	OnStoppedLeading func(l *Leadership)
	// OnPrepare prepares the application to lead, on the node that the leader names as its
	// successor: see Election.Prepare. OnStartedLeading waits until it has returned, so the two never
	// run at the same time. If the node is elected before it was named, OnPrepare is not called.
	OnPrepare func(ctx context.Context) error
	// OnNewLeader is called with each new leadership that this node sees, its own included. It is
	// never called twice with the same leadership, and not when nobody leads. It runs
	// concurrently with the other two. If it is slow it misses older leaderships, never the newest.
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

// Run campaigns in the election, lets the callbacks work while this node leads, and campaigns
// again whenever it has lost leadership. It ends when ctx ends, the election is closed, Resign is
// called, or a callback panics, and then gives leadership up. From the first Run on, the node
// stands only while a Run or Campaign waits or leads.
//
// It returns nil if ctx has ended. Otherwise the error wraps ErrClosed, ErrResigned, or, while
// another Run goes on, ErrCampaigning; or it is the node's failure or a *PanicError. On a node that
// is not a candidate Run only calls OnNewLeader, until SetCandidate makes it one: so the same
// program can run on every node.
//
// Callbacks must not call Transfer, StepDown, Resign or Close and wait for it: these
// wait for the callbacks. To give up from within, return.
//
// Each callback runs on a goroutine of its own, OnStartedLeading and OnStoppedLeading strictly in
// turn. Run returns after they have. A callback that blocks for ever blocks Run and nothing else:
// the node hands over when the lease ends.
func (e *Election) Run(ctx context.Context, cb Callbacks) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var news sync.WaitGroup
	defer news.Wait()
	if cb.OnPrepare != nil {
		cb = e.preparing(both, cb, &news, cancel)
	}
	if cb.OnNewLeader != nil {
		news.Go(func() {
			if err := e.reportLeaders(both, cb); err != nil {
				cancel(err)
			}
		})
	}
	err := e.runAgain(both, cb)
	if errors.Is(err, ErrNotCandidate) {
		select {
		case <-e.p.Stood.Done():
			err = e.runAgain(both, cb)
		case <-both.Done():
			err = context.Cause(both)
		case <-e.p.Gone.Done():
			err = e.p.Ended()
		}
	}
	cancel(err)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return e.failed("run", err)
}

// preparing prepares the application beside the campaigns, and returns callbacks whose work waits
// for that.
func (e *Election) preparing(
	ctx context.Context, cb Callbacks, beside *sync.WaitGroup, cancel context.CancelCauseFunc,
) Callbacks {
	t := make(turn, 1)
	beside.Go(func() {
		if err := e.prepareAgain(ctx, cb.OnPrepare, t); ctx.Err() == nil {
			cancel(err)
		}
	})
	if work := cb.OnStartedLeading; work != nil {
		cb.OnStartedLeading = func(ctx context.Context, l *Leadership) error {
			if err := t.take(ctx); err != nil {
				return err // it was lost while the preparation went on
			}
			defer t.giveBack()
			return work(ctx, l)
		}
	}
	return cb
}

// After work that ended by itself the node rests, so that other nodes get their turn and work that
// fails at once is not repeated without a pause.
const (
	shortestRest = time.Second
	longestRest  = time.Minute
)

// RunFunc is Run for a program with many elections: it returns at once, and there is a goroutine
// only while this node leads. work is Callbacks.OnStartedLeading. ended is called once, on a
// goroutine of its own, after work has returned for the last time. It gets what Run would return,
// except for an error that wraps ErrNotCandidate, for which Run waits until the node is one.
func (e *Election) RunFunc(ctx context.Context, work func(context.Context, *Leadership) error,
	ended func(error),
) {
	e.runFunc(ctx, Callbacks{OnStartedLeading: work}, func(err error) {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = nil
		}
		ended(e.failed("run", err))
	})
}

func (e *Election) runFunc(ctx context.Context, cb Callbacks, ended func(error)) {
	r := &runner{e: e, ctx: ctx, cb: cb, ended: ended}
	if err := r.campaign(0); err != nil {
		go ended(err)
	}
}

// runAgain campaigns and leads again and again, until an error or the end of ctx.
func (e *Election) runAgain(ctx context.Context, cb Callbacks) error {
	ended := make(chan error, 1)
	e.runFunc(ctx, cb, func(err error) { ended <- err })
	return <-ended
}

// runner campaigns and leads again and again. While a campaign waits it has no goroutine.
type runner struct {
	e     *Election
	ctx   context.Context
	cb    Callbacks
	ended func(error)
	rest  time.Duration // the last one

	entering sync.Mutex // is held until a campaign is complete
}

// campaign begins a campaign, after the given leadership if it is not 0. What comes of it, or the
// end of ctx before that, goes on with a goroutine of its own.
func (r *runner) campaign(after leadership.ID) error {
	r.entering.Lock()
	defer r.entering.Unlock()
	var l *Leadership
	var stop func() bool
	l, err := r.e.enterCampaign(r.ctx, after, func(why leadership.Refusal) {
		go func() {
			r.entering.Lock() // until l and stop are there
			mine := stop()
			r.entering.Unlock()
			if mine {
				r.answered(l, why)
			}
		}()
	})
	if err != nil {
		return r.e.failed("campaign", err)
	}
	stop = context.AfterFunc(r.ctx, func() {
		l.Release() // if it was granted meanwhile, too
		r.ended(context.Cause(r.ctx))
	})
	return nil
}

// answered leads if the campaign was granted, and campaigns again.
func (r *runner) answered(l *Leadership, why leadership.Refusal) {
	err := r.e.failed("campaign", r.e.refused(why))
	if err == nil {
		err = r.lead(l)
	}
	if err != nil {
		r.ended(err)
	}
}

func (r *runner) lead(l *Leadership) error {
	began := r.e.n.loop.Now()
	ended, result, err := l.work(r.ctx, r.cb)
	if r.e.n.loop.Now().Sub(began) >= longestRest {
		r.rest = 0
	}
	if err == nil {
		err = context.Cause(r.ctx)
	}
	if ended {
		if r.rest = min(max(2*r.rest, shortestRest), longestRest); err != nil {
			r.rest = 0 // nobody campaigns again
		}
		l.noteEnd(result, r.rest)
	}
	switch {
	case err != nil:
		l.Release()
		return err
	case ended:
		l.release(r.rest)
		return r.campaign(0)
	}
	if err = r.campaign(l.id); err != nil { // as Again does
		l.Release()
	}
	return err
}

// work runs the callbacks of one leadership. The end of ctx, a panic and work that ends by itself
// end the leadership. work returns when the end has begun and the callbacks have returned; the next
// campaign releases the leadership. ended says that the work ended by itself: it was not told to
// stop, or it returned an error of its own, which is result. err is a panic.
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
			ended = result != nil || !told && !elsewhere
			if ended || !elsewhere { // the lease may only have looked as if it had ended
				l.giveUp()
			}
		case <-ctx.Done():
			go func() { l.AwaitSuccessor(); l.giveUp() }() // which ends l.ctx
			ctx = context.WithoutCancel(ctx)               // once is enough
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

// isOf reports whether err is, or wraps, one of those.
func isOf(err error, those ...error) bool {
	return slices.ContainsFunc(those, func(one error) bool { return errors.Is(err, one) })
}

// noteEnd logs and counts that the work of this leadership ended by itself and that the node now
// rests for the given time.
func (l *Leadership) noteEnd(err error, rest time.Duration) {
	log, text := l.e.n.log.Info, ""
	if err != nil {
		log, text = l.e.n.log.Warn, err.Error()
	}
	log("work ended by itself: this node gives leadership up, and rests",
		"group", l.e.p.Name, "term", l.Term(), "error", text, "rest", rest)
	l.e.p.NoteWorkEnd(text, rest)
}

// reportLeaders calls OnNewLeader, never twice with the same leadership.
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

// runCallback runs a callback on a goroutine of its own. The channel gets what it returned, or a
// *PanicError. A callback that ends its goroutine by runtime.Goexit, as t.FailNow does, counts as
// returned.
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

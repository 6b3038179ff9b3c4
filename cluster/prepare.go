package cluster

import (
	"context"
	"errors"
	"iter"
	"time"
)

// ErrNotNamed is the cause of the canceled context of a preparation: the leader names another node
// as its successor.
var ErrNotNamed = errors.New("this node is not the leader's successor any more")

// SetPrepared says whether the application would work at once if this node led. Without a call it
// counts as prepared. An application that needs time calls SetPrepared(false) at first, prepares
// itself when Succession says so, and calls SetPrepared(true). A leader prefers a successor that is
// prepared, before any priority. A handover waits for it, for ElectionConfig.PrepareTimeout at
// most. Prepare does all that.
func (e *Election) SetPrepared(ready bool) { e.n.loop.SetPrepared(e.p, ready) }

// Succession yields whether this node is to lead next: the leader, or the one that died last, names
// it as its successor. It yields what is so now, and again whenever that changes; a slow consumer
// misses changes, never the newest. While the node leads, its own succession stays as it was. It
// ends with ctx, or when the election is closed. A leader names a successor if its Timing has a
// MinRandomWait, or if SetPrepared was ever called on its own node.
func (e *Election) Succession(ctx context.Context) iter.Seq[bool] {
	return func(yield func(bool) bool) {
		for first, was := true, false; ctx.Err() == nil; {
			s := e.p.Succession()
			if named := s.Named || s.Leads && was; first || named != was {
				if first, was = false, named; !yield(named) {
					return
				}
			}
			select {
			case <-s.Changed():
			case <-e.p.Gone.Done():
				return
			case <-ctx.Done():
			}
		}
	}
}

// Prepare calls onPrepare whenever this node is to lead next, and tells the leader when it has
// returned nil: the application is prepared then, and stays so until the node is named no more, or
// until it has led. The context of onPrepare ends when the node is named no more; if the node is
// elected meanwhile, it goes on. If onPrepare fails it is called again after a rest of a second,
// which doubles up to a minute; the error is logged. Prepare ends with ctx, or when the election is
// closed, after onPrepare has returned. Its error is nil after the end of ctx.
//
// With Run, set Callbacks.OnPrepare instead.
func (e *Election) Prepare(ctx context.Context, onPrepare func(context.Context) error) error {
	err := e.prepareAgain(ctx, onPrepare, make(turn, 1))
	if err != nil && ctx.Err() != nil {
		return nil
	}
	return e.failed("prepare", err)
}

// AwaitSuccessor waits, while the work goes on, until the application of the successor is prepared
// to lead: for ElectionConfig.PrepareTimeout at most, and no longer than this leadership holds. It
// returns at once if there is no successor, or if that needs no preparation. Call it before Release
// in a planned end; Run does so at the end of its context.
func (l *Leadership) AwaitSuccessor() {
	limit := time.After(l.e.p.Config.Prepare)
	for s := l.e.p.Succession(); s.HeirCold; s = l.e.p.Succession() {
		select {
		case <-s.Changed():
		case <-l.ctx.Done():
			return
		case <-limit:
			return
		}
	}
}

// turn is had by one of OnPrepare and OnStartedLeading at a time. A wait for it ends with a
// context, unlike one for a mutex.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) giveBack() { <-t }

// prepareAgain is Prepare. OnPrepare runs in its turn.
func (e *Election) prepareAgain(
	ctx context.Context, onPrepare func(context.Context) error, t turn,
) error {
	e.SetPrepared(false)
	rest := shortestRest
	for {
		s, again := e.p.Succession(), (<-chan time.Time)(nil)
		if s.Named {
			failed, err := e.prepareOnce(ctx, onPrepare, t)
			if err != nil {
				return err
			}
			s, rest = e.p.Succession(), min(2*rest, longestRest)
			if !failed {
				rest = shortestRest
			}
			again = time.After(rest)
		}
		select {
		case <-s.Changed():
		case <-again:
		case <-e.p.Gone.Done():
			return e.p.Ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// prepareOnce prepares the application, and keeps it prepared until this node is neither named nor
// leads. failed says that onPrepare failed before. err is a panic of onPrepare, the cause of ctx,
// or why the election has ended.
func (e *Election) prepareOnce(
	ctx context.Context, onPrepare func(context.Context) error, t turn,
) (failed bool, err error) {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := t.take(ctx); err != nil {
		return false, err
	}
	if s := e.p.Succession(); !s.Named || s.Leads {
		t.giveBack()
		return false, nil
	}
	began := time.Now()
	done := runCallback("OnPrepare", func() error { defer t.giveBack(); return onPrepare(own) })
	defer e.SetPrepared(false)
	for s := e.p.Succession(); s.Named || s.Leads; s = e.p.Succession() {
		select {
		case why := <-done:
			done = nil
			if panicked := (*PanicError)(nil); errors.As(why, &panicked) {
				return true, why
			} else if why != nil {
				e.n.log.Warn("the application is not prepared to lead", "group", e.p.Name, "error", why)
				return true, nil
			}
			e.n.log.Info("prepared to lead", "group", e.p.Name, "took", time.Since(began))
			e.SetPrepared(true)
		case <-s.Changed():
		case <-e.p.Gone.Done():
			return false, errors.Join(e.p.Ended(), stopped(done, cancel, e.p.Ended()))
		case <-ctx.Done():
			return false, errors.Join(context.Cause(ctx), stopped(done, cancel, context.Cause(ctx)))
		}
	}
	return false, stopped(done, cancel, ErrNotNamed)
}

// stopped cancels a preparation and waits for it. It returns only a panic.
func stopped(done <-chan error, cancel context.CancelCauseFunc, why error) error {
	if done == nil {
		return nil
	}
	cancel(why)
	err := <-done
	if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
		return err
	}
	return nil
}

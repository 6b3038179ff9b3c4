package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Errors of Campaign and Run.
var (
	// ErrCampaigning means that a Campaign or Run of this election waits on this node already, or
	// that its last leadership has not been released: work of one election never runs twice in
	// one process.
	ErrCampaigning = loop.ErrCampaigning
	// ErrResigned is what a waiting Campaign gets when Resign is called.
	ErrResigned = errors.New("this node resigned")
	// ErrNotCandidate means that this node has never been a candidate in the election: it is not a
	// voter, or NotCandidate is set.
	ErrNotCandidate = errors.New("this node is not a candidate")
)

// Leadership is the leadership of this node in one election, which Campaign returned: the right to
// do what only one node may do. It is safe for concurrent use.
//
// It ends in two steps. First its context is canceled, at the stop margin before the lease ends or
// as soon as the node is to hand over: the work must stop now. Then Done is closed, when Release
// says that the work has stopped, and at Deadline at the latest: from then on another node may
// lead. Work that stops in time never overlaps with that of another node.
//
// A new term in which the same node leads on (REAFFIRMED) does not end a leadership.
type Leadership struct {
	e      *Election
	id     leadership.ID
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   <-chan struct{}
	answer func(leadership.Refusal) // to the campaign, under a lock: NotRefused if it leads
	term   atomic.Uint64            // the newest
	end    atomic.Int64             // the elector.Time before which it is valid; 0 if it is over

	mu       sync.Mutex // guards the fields below
	reason   elector.Reason
	deadline elector.Time
	told     time.Time // the earliest result of Deadline since the context was canceled
}

// Campaign waits until this node leads the election with time left on its lease, and returns the
// leadership. Do the work of the leader under its Context, and then call Release, or Again to
// campaign on.
//
// From the first Campaign on, the node stands for election only while a campaign waits or a
// leadership is held. With ElectionConfig.AwaitCampaign that is so from the start.
//
// The error wraps ErrCampaigning, ErrNotCandidate, ErrResigned or ErrClosed, or is the cause of ctx
// or the node's failure.
func (e *Election) Campaign(ctx context.Context) (*Leadership, error) { return e.campaign(ctx, 0) }

// Again says, as Release does, that the work of this leadership has stopped, and campaigns again.
// Its Context must have been canceled. Unlike Release followed by Campaign it gives nothing up: a
// node whose lease only seemed to run out, or whose transfer failed, leads on. The errors are those
// of Campaign; the leadership is then released. If its Context is not canceled the error wraps
// ErrCampaigning, and the leadership stays as it is.
func (l *Leadership) Again(ctx context.Context) (*Leadership, error) {
	next, err := l.e.campaign(ctx, l.id)
	if err != nil && l.ctx.Err() != nil {
		l.Release()
	}
	return next, err
}

// campaign campaigns, after the given leadership if it is not 0.
func (e *Election) campaign(ctx context.Context, after leadership.ID) (*Leadership, error) {
	answer := make(chan leadership.Refusal, 1)
	l, err := e.enterCampaign(ctx, after, func(why leadership.Refusal) { answer <- why })
	if err == nil {
		select {
		case why := <-answer:
			err = e.refused(why)
		case <-ctx.Done():
			err = context.Cause(ctx)
			l.Release() // if it was granted meanwhile, too
		}
	}
	if err != nil {
		return nil, e.failed("campaign", err)
	}
	return l, nil
}

// enterCampaign begins a campaign, and returns the leadership that it may get. The context of that
// has the values of ctx, and ends only with the leadership. answer must not wait.
func (e *Election) enterCampaign(
	ctx context.Context, after leadership.ID, answer func(leadership.Refusal),
) (*Leadership, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l := &Leadership{e: e, id: e.p.NewID(), answer: answer}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	over, why := e.p.Campaign(leadership.Campaign{ID: l.id, After: after}, l.apply)
	l.done = over
	if err := e.refused(why); err != nil {
		return nil, err
	}
	return l, nil
}

// refused is the error for a campaign that fails; nil if it does not.
func (e *Election) refused(why leadership.Refusal) error {
	switch why {
	case leadership.NotRefused:
		return nil
	case leadership.Busy:
		return ErrCampaigning
	case leadership.NotCandidate:
		return ErrNotCandidate
	case leadership.Resigned:
		return ErrResigned
	}
	return e.p.Ended()
}

// apply carries out the effects of a step of the leaderships' machine.
func (l *Leadership) apply(e leadership.Effects, s leadership.State) {
	if e.Refused == l.id {
		l.answer(e.Refusal)
	}
	if e.Holder != l.id {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Term != 0 {
		l.term.Store(uint64(s.Term))
	}
	l.deadline = e.Deadline
	if s.ID == l.id && s.Phase.Working() {
		l.end.Store(int64(e.Deadline))
	} else {
		l.end.Store(0)
	}
	if e.Granted == l.id {
		l.answer(leadership.NotRefused)
	}
	if e.Stop != elector.ReasonNone {
		l.reason = e.Stop
		l.cancel(&EndedError{
			Node: l.e.n.cfg.Node, Group: l.e.p.Name, Term: l.Term(), Reason: e.Stop,
		})
	}
	if e.Overdue {
		l.e.n.log.Warn("guarded work has not stopped in time",
			"group", l.e.p.Name, "term", l.Term(), "reason", l.reason.String())
	}
}

// Release says that the work of this leadership has stopped. If this node still leads it hands over
// to the best follower, and it does not stand again before the next Campaign. Releasing again does
// nothing.
func (l *Leadership) Release() { l.release(0) }

// release is Release with a rest, for which the node does not stand.
func (l *Leadership) release(rest time.Duration) {
	l.e.p.Feed(leadership.Release{ID: l.id, Rest: rest})
	l.e.n.loop.Settle(l.e.p)
}

// giveUp tells the work to stop by the present end of the lease, unless it was told before.
func (l *Leadership) giveUp() { l.e.p.Feed(leadership.GiveUp{ID: l.id}) }

// Context is canceled when the guarded work must stop. Its cause is an
// *EndedError.
func (l *Leadership) Context() context.Context { return l.ctx }

// Done is closed when the leadership is over for good: it was released, or its deadline has passed.
// Work that cannot stop in time should end its process rather than go on.
func (l *Leadership) Done() <-chan struct{} { return l.done }

// Term is the term of the leadership. It rises if the node is re-affirmed.
func (l *Leadership) Term() lsn.Term { return lsn.Term(l.term.Load()) }

// Valid reports whether this leadership excludes every other one at this moment: the clock is read
// at every call. It stays true from when Context is canceled until Deadline, so that the work can
// stop in order.
func (l *Leadership) Valid() bool {
	now := l.e.n.loop.Now()
	if now < elector.Time(l.end.Load()) {
		return true
	}
	l.e.p.State() // the lease that many elections share may have moved on
	return now < elector.Time(l.end.Load())
}

// Deadline is the time when the leadership ends. Heartbeats move it on until Context is canceled;
// from then on it never becomes later. If Context was canceled because the lease had ended or was
// lost, Deadline is when that happened, however late this process noticed. After Release it is not
// later than the release. It is the zero time if the leadership needs no lease, as that of a single
// voter. Deadline is for people and timers; Valid decides.
func (l *Leadership) Deadline() time.Time {
	wall := time.Now() // read first, so that the result is never later than the deadline
	now := l.e.n.loop.Now()
	l.e.p.State() // the lease that many elections share may have moved on
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deadline == elector.Never {
		return time.Time{}
	}
	at := wall.Add(l.deadline.Sub(now))
	if l.reason == elector.ReasonNone {
		return at
	}
	// The machine may sleep between the readings of the two clocks: the earliest result counts.
	if l.told.IsZero() || at.Before(l.told) {
		l.told = at
	}
	return l.told
}

// Reason is why the leadership ends or has ended: LEASE_EXPIRED, TRANSFERRED,
// RESIGNED, LEADER_PREEMPTED or STOPPED; elector.ReasonNone while Context lives.
func (l *Leadership) Reason() elector.Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// NextLSN issues the next fencing token of this leadership. Tokens rise strictly, also from one
// leadership to the next, on whatever node. The error wraps ErrNotLeader once the leadership is not
// valid any more, even if this node holds another one then.
func (l *Leadership) NextLSN() (lsn.LSN, error) {
	next, err := l.e.NextLSN()
	// Valid is checked afterwards: a leadership that is valid now was so when the token was issued,
	// so the token is not that of a later leadership.
	if err == nil && !l.Valid() {
		err = l.e.failed("next LSN of an ended leadership", ErrNotLeader)
	}
	if err != nil {
		return lsn.LSN{}, err
	}
	return next, nil
}

// EndedError is the cause of a leadership's canceled context.
type EndedError struct {
	Node   NodeID
	Group  string
	Term   lsn.Term
	Reason elector.Reason
}

// Error says which leadership ended, and why.
func (e *EndedError) Error() string {
	return fmt.Sprintf("leadership of node %s in election %q, term %d, ends: %s",
		e.Node, e.Group, e.Term, e.Reason)
}

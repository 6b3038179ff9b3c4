package cluster

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Leadership is leadership of one election by this node, from when Campaign
// returned it: the right to do what only one node may do. It is safe for
// concurrent use.
//
// It ends in two steps. First its context is cancelled, the stop margin before
// the lease ends or as soon as the node is to hand over: the work must stop now.
// Then, once the work said by Release that it has stopped, or at Deadline, Done is
// closed: from then on another node may lead. Work that stops in time never
// overlaps with that of another node.
//
// A new term in which the same node goes on (REAFFIRMED) does not end it.
type Leadership struct {
	e      *Election
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	term   atomic.Uint64 // the newest
	// fixed is the deadline once it moves no more; elector.Never while it is the
	// lease's, which heartbeats renew, and 0 when the leadership is over.
	fixed atomic.Int64

	dismissed bool  // Resign was called: it is not followed by another; the driver's
	watch     watch // the warden's

	mu       sync.Mutex
	phase    phase
	reason   elector.Reason
	deadline elector.Time // when the phase is not serving: what fixed was set to first
	told     time.Time    // what Deadline said since then; it never says anything later
}

// phase is how far a leadership has come; it only ever grows.
type phase uint8

const (
	serving  phase = iota // the work may go on
	stopping              // the work was told to stop
	over                  // another node may lead
)

// newLeadership returns a leadership that is still to begin. Its context has the
// values of ctx, but ends only with the leadership.
func newLeadership(ctx context.Context, e *Election) *Leadership {
	l := &Leadership{e: e, done: make(chan struct{}), watch: watch{place: nowhere}}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.fixed.Store(int64(elector.Never))
	return l
}

// Context is cancelled when the guarded work must stop. Its cause is an
// *EndedError.
func (l *Leadership) Context() context.Context { return l.ctx }

// Done is closed when the leadership is over for good: the work was released, or
// its deadline has passed. Work that cannot stop in time should end its process
// rather than go on after it.
func (l *Leadership) Done() <-chan struct{} { return l.done }

// Term is the term of the leadership. It rises if the node is re-affirmed.
func (l *Leadership) Term() lsn.Term { return lsn.Term(l.term.Load()) }

// Valid reports whether this leadership excludes every other at this very
// moment: the clock is read at every call. It stays true after Context is
// cancelled until Deadline, so that the work can stop in order.
func (l *Leadership) Valid() bool { return l.e.n.now() < l.end() }

// end is when the leadership ends unless it is renewed; 0 if it is over. The lease is
// read first: if this leadership is not over afterwards, it was not the lease of a
// later one.
func (l *Leadership) end() elector.Time {
	lease := elector.Time(l.e.g.leaseEnd.Load())
	if fixed := elector.Time(l.fixed.Load()); fixed != elector.Never {
		return fixed
	}
	return lease
}

// state is the leadership's phase and its end at one moment.
func (l *Leadership) state() (phase, elector.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase, l.end()
}

// Deadline is when the leadership ends by the clock: heartbeats move it on until
// Context is cancelled, then it never becomes later. If Context was cancelled because
// the lease had ended or was lost, it is when that happened, however late this process
// noticed; once the work is released, it is not later than that. It is the zero time if
// the leadership needs no lease, as that of a single voter. For people and timers; what
// decides is Valid.
func (l *Leadership) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == serving {
		if end := l.end(); end != 0 {
			return l.wallTime(end)
		}
		return l.wallTime(l.lastEnd()) // lost, and the driver is about to say so
	}
	// Two clocks are read, and the machine may sleep: what was said first is the limit.
	at := l.wallTime(l.deadline)
	if l.told.IsZero() || at.Before(l.told) {
		l.told = at
	}
	return l.told
}

// wallTime is when t comes, never later than that; the zero time for Never.
func (l *Leadership) wallTime(t elector.Time) time.Time {
	if t == elector.Never {
		return time.Time{}
	}
	return time.Now().Add(t.Sub(l.e.n.now()))
}

// lastEnd is the end of a leadership that nobody was told to stop: that of its lease,
// or now if that comes first.
func (l *Leadership) lastEnd() elector.Time {
	end := l.end()
	if end == 0 { // the lease is lost, and this was it
		end = elector.Time(l.e.g.lastLease.Load())
	}
	return min(end, l.e.n.now())
}

// NextLSN issues the next fencing token of this leadership. Tokens rise strictly,
// over the leaderships of all nodes too. The error wraps ErrNotLeader once the
// leadership is not valid any more, whatever leadership this node may hold then.
func (l *Leadership) NextLSN() (lsn.LSN, error) {
	next, err := l.e.NextLSN()
	// Asked afterwards: if this leadership is valid now, it was when the token was
	// issued, so the token is not a later leadership's.
	if err == nil && !l.Valid() {
		err = fmt.Errorf("next LSN of an ended leadership of node %s in election %q: %w", l.e.n.cfg.Node, l.e.g.name, ErrNotLeader)
	}
	if err != nil {
		return lsn.LSN{}, err
	}
	return next, nil
}

// Reason is why the leadership ends or has ended: LEASE_EXPIRED, TRANSFERRED,
// RESIGNED, LEADER_PREEMPTED or STOPPED; elector.ReasonNone while Context lives.
func (l *Leadership) Reason() elector.Reason {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// EndedError is the cause of a leadership's cancelled context.
type EndedError struct {
	Node   NodeID
	Group  string
	Term   lsn.Term
	Reason elector.Reason
}

// Error says which leadership ended, and why.
func (e *EndedError) Error() string {
	return fmt.Sprintf("leadership of node %s in election %q, term %d, ends: %s", e.Node, e.Group, e.Term, e.Reason)
}

// stop tells the work to stop by the end of the lease as it stands, unless it was
// told before.
func (l *Leadership) stop(why elector.Reason) { l.stopBy(why, elector.Never) }

// stopBy is stop with a deadline, if that is earlier. Work that was told before, when
// there was no lease and so no deadline, gets one now.
func (l *Leadership) stopBy(why elector.Reason, deadline elector.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch end := l.end(); {
	case l.phase == serving && end == 0: // lost, and the driver is about to say so
		l.tell(why, l.lastEnd())
		l.close()
	case l.phase == serving:
		l.phase = stopping
		l.tell(why, min(end, deadline))
	case l.phase == stopping && end == elector.Never:
		l.deadline = deadline
		l.fixed.Store(int64(deadline))
	}
}

// tell cancels the context. It runs under the lock.
func (l *Leadership) tell(why elector.Reason, deadline elector.Time) {
	l.reason, l.deadline = why, deadline
	l.fixed.Store(int64(deadline))
	l.cancel(&EndedError{Node: l.e.n.cfg.Node, Group: l.e.g.name, Term: l.Term(), Reason: why})
}

// finish ends the leadership; why counts if nobody told the work before. It may be
// called again.
func (l *Leadership) finish(why elector.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == over {
		return
	}
	if l.phase == serving {
		l.tell(why, l.lastEnd())
	}
	l.close()
}

// close ends the leadership for good. It runs under the lock.
func (l *Leadership) close() {
	l.phase = over
	l.deadline = min(l.deadline, l.e.n.now()) // released work has ended before it
	l.fixed.Store(0)
	close(l.done)
}

// at is the leadership's phase.
func (l *Leadership) at() phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase
}

package cluster

import (
	"context"
	"fmt"
	"iter"

	"github.com/bmqelect/bmqelect/lsn"
)

// Leader is a leadership as a node perceives it: who leads, in which term.
type Leader struct {
	Node NodeID // "" for none
	Term lsn.Term
}

// Leader returns the leader that this node is or follows. If there is none it
// waits for one; the error then is the cause of ctx, or wraps ErrClosed.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	for l := range e.Observe(ctx) {
		if l.Node != "" {
			return l, nil
		}
	}
	err := context.Cause(ctx)
	if err == nil {
		err = ErrClosed
	}
	return Leader{}, fmt.Errorf("leader of election %q as node %s sees it: %w", e.g.name, e.n.cfg.Node, err)
}

// Observe yields the leader that this node is or follows, at first the present one,
// then every change; a Leader without a name is none. No leadership is yielded twice in a
// row. A consumer that is slow misses what is past, never what is: the newest is always
// yielded. It ends with ctx, or when the election is closed.
func (e *Election) Observe(ctx context.Context) iter.Seq[Leader] {
	return func(yield func(Leader) bool) {
		sub := e.Subscribe(1) // holds the newest event
		defer sub.Close()
		now, open := e.leader(ctx)
		if !open || !yield(now) {
			return
		}
		for {
			next, ok := e.next(ctx, sub)
			switch {
			case !ok:
				return
			case next == now:
			case !yield(next):
				return
			}
			now = next
		}
	}
}

// leader is the leader as of now; open is false if the election is closed, or ctx
// has ended.
func (e *Election) leader(ctx context.Context) (now Leader, open bool) {
	var l Leader
	err := e.do(ctx, func() error {
		s := e.g.machine.Status()
		l = perceived(s.Leader, s.Term)
		return nil
	})
	if err != nil {
		return Leader{}, false
	}
	return l, true
}

// next waits for the next event of an open election.
func (e *Election) next(ctx context.Context, sub *Subscription) (Leader, bool) {
	select {
	case event, ok := <-sub.Events():
		return perceived(event.Leader, event.Term), ok && ctx.Err() == nil
	case <-e.g.gone:
	case <-ctx.Done():
	}
	return Leader{}, false
}

// perceived forgets the term of no leader, which is nobody's.
func perceived(id NodeID, term lsn.Term) Leader {
	if id == "" {
		return Leader{}
	}
	return Leader{id, term}
}

package cluster

import (
	"context"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
)

// ErrReaffirmed means that the leader got another term while Confirm waited. It leads on; the next
// Confirm is about the new term.
var ErrReaffirmed = loop.ErrReaffirmed

// Confirm returns nil if it is proven that this node led when Confirm was called, in the term that
// Term returned then: no other node had been elected in a higher one. The proof is a round trip to
// a quorum of the voters, which answer that they have voted in no higher term (docs/protocol.md,
// 7.13). In contrast to Valid it holds whatever the clocks do; each voter must keep its data
// directory. What the caller has read before is as new as if it was read when Confirm was called.
//
// Calls at the same time share a round. The error wraps ErrNotLeader once the leadership is over,
// ErrReaffirmed, or ErrClosed, or is the cause of ctx. It wraps ErrRefused while a voter runs
// a build that is too old; others say what the election lacks: a data directory, or safe quorums.
func (l *Leadership) Confirm(ctx context.Context) error {
	err := l.check()
	if err == nil {
		err = l.e.n.loop.Confirm(ctx, l.e.p)
	}
	if err == nil {
		err = l.check() // the node may lead on without this leadership
	}
	return l.e.failed("confirmation", err)
}

// Confirm is Leadership.Confirm for callers that do not hold the leadership, on the node that
// leads. On any other, the error wraps ErrNotLeader.
func (e *Election) Confirm(ctx context.Context) error {
	return e.failed("confirmation", e.n.loop.Confirm(ctx, e.p))
}

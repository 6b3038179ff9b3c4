package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
)

// SetFit says whether the application is fit to lead: nil means that it is, as every node is at
// first; otherwise unfit is the reason why it is not. A node that is not fit does not stand. As
// leader it hands over to the best follower as soon as there is one, and leads on until then. It
// votes in any case. Call SetFit whenever the result of a health check changes, or after every
// check: a call costs little. The probes of Config.Health judge for themselves: the node is fit if
// they and the application say so. The error wraps ErrClosed, or is the node's failure.
func (e *Election) SetFit(unfit error) error {
	why := textOf(unfit)
	before, err := e.p.SetFit(loop.Application, why)
	if err != nil {
		return e.failed("fitness", err)
	}
	if (why == "") != (before == "") {
		e.n.log.Info("fitness", "group", e.p.Name, "fit", why == "", "why", why)
	}
	return nil
}

// SetCandidate says whether the node is a candidate from now on; ElectionConfig.NotCandidate
// holds until then. A node that is no longer a candidate behaves like one that is not fit, see
// SetFit, and its campaigns wait. On an observer the error wraps ErrNotCandidate.
func (e *Election) SetCandidate(candidate bool) error {
	if candidate && !e.p.IsVoter() {
		return e.failed("candidacy", fmt.Errorf("it has no vote: %w", ErrNotCandidate))
	}
	before, err := e.p.SetCandidate(candidate)
	if err != nil {
		return e.failed("candidacy", err)
	}
	if before != candidate {
		e.n.log.Info("candidacy", "group", e.p.Name, "candidate", candidate)
	}
	return nil
}

// SetPriority replaces ElectionConfig.Priority until the process ends; any int is legal, and
// on an observer it changes nothing. The others learn of it within a heartbeat period. The
// error wraps ErrClosed, or is the node's failure.
func (e *Election) SetPriority(priority int) error {
	if _, err := e.p.Change(leadership.Prefer{Priority: priority}); err != nil {
		return e.failed("priority", err)
	}
	e.n.log.Info("priority", "group", e.p.Name, "priority", priority)
	return nil
}

// watchHealth begins to watch the probes, and returns when it has their first results.
func (n *Node) watchHealth() {
	o := n.cfg.Health
	o.Changed = func(s health.Status) {
		if s.Fit {
			n.log.Info("probe passes", "probe", s.Name)
		} else {
			n.log.Warn("probe fails: this node is not fit to lead", "probe", s.Name, "why", s.Why)
		}
		if n.cfg.Health.Changed != nil {
			n.cfg.Health.Changed(s)
		}
	}
	n.health = health.Watch(o, func(unfit string) {
		n.loop.SetHealth(unfit, cmp.Or(o.Period, health.DefaultPeriod))
	})
}

// textOf is the text of an error of the application, "" if the error is nil. If its method panics
// or returns no text, textOf says so: the application is not fit then either.
func textOf(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("an error of type %T whose text cannot be had: %v", err, v)
		}
	}()
	return cmp.Or(err.Error(), "no reason given")
}

// Resign gives up the campaign or the leadership of this node. A waiting Campaign, Again or Run
// fails with ErrResigned. Guarded work is told to stop and waited for, at most until the lease
// ends. Then the best follower leads, and this node does not stand again before the next
// Campaign. Resign is for callers that do not hold the leadership; the holder calls Release. It
// returns when the node does not lead, or when ctx ends, and then the handover goes on.
func (e *Election) Resign(ctx context.Context) error {
	return e.failed("resignation", e.n.loop.Resign(ctx, e.p))
}

// maxRest bounds the rest after a step-down.
const maxRest = 24 * time.Hour

// StepDown lets this node step down, in favor of the best follower if there is one, and not stand
// again for the given rest (at most 24 h; 0: no rest). Guarded work is told to stop and waited for,
// at most until the lease ends. A node that does not lead only rests; without a rest the error
// wraps ErrNotLeader. On a leader whose elections are paused the error wraps ErrPaused. StepDown
// returns when the node does not lead, or when ctx ends, and then the handover goes on.
func (e *Election) StepDown(ctx context.Context, rest time.Duration) error {
	err := fmt.Errorf("a rest of %s, but it must be between 0 and %s", rest, maxRest)
	if rest >= 0 && rest <= maxRest {
		err = e.n.loop.StepDown(ctx, e.p, rest)
	}
	return e.failed("step-down", err)
}

// transferBuffer is more than the events of a few elections.
const transferBuffer = 64

// Transfer hands leadership from this node to another voter, or to the best follower if to is "".
// It returns nil when the target leads. It fails, and changes nothing, if this node is not the
// leader, or if the target cannot lead (not connected, not a candidate, without a recent ack) or
// does not answer within Timing.ElectionResult. A target whose link is new may have just started,
// and then it cannot lead for the time of Timing.Lease: this node leads on meanwhile. Then guarded
// work is told to stop and waited for, at most until the lease ends, and this node steps down.
// After that Transfer fails only if another node is elected instead. When ctx ends first, the
// transfer goes on, and may still succeed.
func (e *Election) Transfer(ctx context.Context, to NodeID) error {
	sub := e.Subscribe(transferBuffer)
	defer sub.Close()
	to, err := e.n.loop.Transfer(ctx, e.p, to)
	if err == nil {
		err = e.awaitSuccessor(ctx, sub, to)
	}
	if err != nil {
		return fmt.Errorf("transfer from node %s to %s in election %q: %w",
			e.n.cfg.Node, cmp.Or(to, "the best follower"), e.p.Name, err)
	}
	return nil
}

// Transfer is Election.Transfer of the default election.
func (n *Node) Transfer(ctx context.Context, to NodeID) error {
	return n.election.Transfer(ctx, to)
}

// awaitSuccessor waits until the next leader is known, and fails if that is not the target.
func (e *Election) awaitSuccessor(ctx context.Context, sub *Subscription, to NodeID) error {
	left := false
	for {
		select {
		case now := <-sub.Events(): // closed after Gone
			left = left || now.From == elector.Leader && now.To != elector.Leader || now.Missed > 0
			switch {
			case !left:
			case now.Leader == to:
				return nil
			case now.Leader != "":
				return fmt.Errorf("node %s was elected instead, in term %d", now.Leader, now.Term)
			}
		case <-e.p.Gone.Done():
			return e.p.Ended()
		case <-ctx.Done():
			return fmt.Errorf("this node gave up leadership, but the target does not lead yet: %w",
				context.Cause(ctx))
		}
	}
}

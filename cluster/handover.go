package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
)

// SetFit says whether the application is fit to lead: nil that it is, as every
// node is at first, or otherwise why it is not. A node that is not fit does not stand;
// as leader it hands over to the best follower as soon as there is one, and leads
// on until then. It votes in any case. Call it whenever a health check changes its
// mind, or always: that costs little. The error wraps ErrClosed, or is the node's failure.
func (e *Election) SetFit(unfit error) error {
	why, before := textOf(unfit), ""
	err := e.change("fitness", func(now elector.Time) {
		before = e.g.leadership.State().Unfit
		e.g.advance(now, leadership.Fitness{Unfit: why})
	})
	if err == nil && (why == "") != (before == "") {
		e.n.log.Info("fitness", "group", e.g.name, "fit", why == "", "why", why)
	}
	return err
}

// SetCandidate says whether the node is a candidate from now on; ElectionConfig.NotCandidate
// holds until then. One that is no candidate any more does what one does that is not fit,
// for which see SetFit; a campaign waits. On an observer the error wraps ErrNotCandidate.
func (e *Election) SetCandidate(candidate bool) error {
	if candidate && e.n.cfg.elector(ElectionConfig{}).Observer() {
		return fmt.Errorf("candidacy of node %s in election %q: it has no vote: %w",
			e.n.cfg.Node, e.g.name, ErrNotCandidate)
	}
	changed := false
	err := e.change("candidacy", func(now elector.Time) {
		before := e.g.leadership.State()
		changed = before.MayStand != candidate
		e.g.advance(now, leadership.Candidacy{MayStand: candidate})
		if candidate && !before.Stood {
			close(e.g.stood)
		}
	})
	if err == nil && changed {
		e.n.log.Info("candidacy", "group", e.g.name, "candidate", candidate)
	}
	return err
}

// SetPriority replaces ElectionConfig.Priority until the process ends; any int is legal, and
// on an observer it changes nothing. The others learn of it within a heartbeat period. The
// error wraps ErrClosed, or is the node's failure.
func (e *Election) SetPriority(priority int) error {
	err := e.change("priority", func(elector.Time) {
		e.g.priority.Store(int64(priority))
		e.g.request(elector.Prefer{Priority: priority})
	})
	if err == nil {
		e.n.log.Info("priority", "group", e.g.name, "priority", priority)
	}
	return err
}

// change changes what the election is on this node, unless it has ended. It does not wait
// for the driver.
func (e *Election) change(what string, f func(now elector.Time)) error {
	now := e.g.now()
	e.g.mu.Lock()
	err := e.g.ended
	if err == nil {
		f(now)
	}
	e.g.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s of node %s in election %q: %w", what, e.n.cfg.Node, e.g.name, err)
	}
	e.n.waiting.add(e.g)
	return nil
}

// textOf is the text of an error of the application's, "" if it is nil. Its method
// may panic, or say nothing: then the application is not fit either.
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

// Resign gives up what this node has in the election: a waiting Campaign, Again or
// Run fails with ErrResigned; guarded work is told to stop and waited for, at most
// until the lease ends; then the best follower leads, and this node does not stand
// again before the next Campaign. It is for those who do not hold the leadership; the
// holder calls Release. It returns when the node does not lead, or when ctx ends,
// and then the handover goes on.
func (e *Election) Resign(ctx context.Context) error {
	_, err := e.handOver(ctx, func() error {
		e.g.feed(leadership.Resign{})
		e.n.stepRequests(e.g)
		return nil
	})
	if err != nil {
		return fmt.Errorf("resignation of node %s in election %q: %w", e.n.cfg.Node, e.g.name, err)
	}
	return nil
}

// maxRest bounds the rest after a step-down.
const maxRest = 24 * time.Hour

// StepDown lets this node step down, in favor of the best follower if there is
// one, and not stand again for the given time (at most 24 h; 0 is none). Guarded work is
// told to stop and waited for, at most until the lease ends. On a node that does not
// lead only the time counts; without one the error wraps ErrNotLeader, and on a leader
// whose elections are paused ErrPaused. It returns
// when the node leads no more, or when ctx ends, and then the handover goes on.
func (e *Election) StepDown(ctx context.Context, rest time.Duration) error {
	err := fmt.Errorf("a rest of %s, but it must be between 0 and %s", rest, maxRest)
	if rest >= 0 && rest <= maxRest {
		_, err = e.handOver(ctx, func() error {
			if e.g.leadTerm == 0 && rest == 0 {
				return ErrNotLeader
			}
			if e.g.leadTerm != 0 {
				if err := e.n.refuseUnnamed(); err != nil {
					return err
				}
			}
			e.n.step(e.g, elector.Resign{Rest: rest})
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("step-down of node %s in election %q: %w", e.n.cfg.Node, e.g.name, err)
	}
	return nil
}

// transferBuffer is more than the events of a few elections.
const transferBuffer = 64

// Transfer hands leadership from this node to another voter, or to the best
// follower if to is "". It returns nil when the target leads. It fails, and this
// node leads on, if this node is not the leader, or the target is not fit (not
// connected, not a candidate, without a recent ack) or does not answer within the
// election result's time. Once the target has answered, guarded work is told to stop and
// waited for, at most until the lease ends; then this node steps down. It fails
// after that only if another node is elected instead. When ctx ends first, the
// transfer goes on, and may still succeed.
func (e *Election) Transfer(ctx context.Context, to NodeID) error {
	sub := e.Subscribe(transferBuffer)
	defer sub.Close()
	named := make(chan NodeID, 1)
	leads, err := e.handOver(ctx, func() error {
		best, err := e.successor(to)
		named <- best
		if err == nil {
			e.n.step(e.g, elector.Transfer{To: best})
		}
		return err
	})
	select {
	case to = <-named:
	default: // the driver has not looked
	}
	if err == nil && leads {
		err = fmt.Errorf("it does not answer, or cannot lead any more; node %s leads on", e.n.cfg.Node)
	}
	if err == nil {
		err = e.awaitSuccessor(ctx, sub, to)
	}
	if err != nil {
		return fmt.Errorf("transfer from node %s to %s in election %q: %w",
			e.n.cfg.Node, cmp.Or(to, "the best follower"), e.g.name, err)
	}
	return nil
}

// Transfer is Election.Transfer of the default election.
func (n *Node) Transfer(ctx context.Context, to NodeID) error {
	return n.election.Transfer(ctx, to)
}

// successor is the voter to hand over to: the one asked for, or the best.
func (e *Election) successor(to NodeID) (NodeID, error) {
	m := e.g.elector
	if to == "" && e.g.leadTerm != 0 {
		if err := e.n.refuseUnnamed(); err != nil {
			return "", err
		}
		to = m.BestSuccessor()
	}
	if to == "" && m.Lease() != (elector.Lease{}) {
		return "", errors.New(
			"no follower could take over: none is connected, a candidate, and acks heartbeats")
	}
	return to, m.Transferable(to)
}

// awaitSuccessor waits until somebody leads after this node, and fails if it is
// not the target.
func (e *Election) awaitSuccessor(ctx context.Context, sub *Subscription, to NodeID) error {
	left := false
	for {
		select {
		case now, ok := <-sub.Events():
			left = left || now.From == elector.Leader && now.To != elector.Leader || now.Missed > 0
			switch {
			case !ok:
				return ErrClosed
			case !left:
			case now.Leader == to:
				return nil
			case now.Leader != "":
				return fmt.Errorf("node %s was elected instead, in term %d", now.Leader, now.Term)
			}
		case <-e.g.gone:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("this node gave up leadership, but the target does not lead yet: %w",
				context.Cause(ctx))
		}
	}
}

// handOver runs begin on the driver, and waits until no handover of the election is
// under way. It reports whether this node led at that moment: afterwards it may have
// been elected again.
func (e *Election) handOver(ctx context.Context, begin func() error) (leads bool, err error) {
	var end *handoverEnd
	err = e.do(ctx, func() error {
		err := begin()
		end = e.g.awaitHandoverEnd()
		return err
	})
	if err != nil {
		return false, err
	}
	select {
	case <-end.reached:
		return end.leads, nil
	case <-e.n.driverDone:
		return false, ErrClosed
	case <-ctx.Done():
		return false, fmt.Errorf("under way, and going on: %w", context.Cause(ctx))
	}
}

// handoverEnd is the moment at which no handover of an election is under way.
type handoverEnd struct {
	reached chan struct{} // closed then
	leads   bool          // whether this node leads then; set before
}

// awaitHandoverEnd returns the next such moment, or the present one. It runs on the driver.
func (g *group) awaitHandoverEnd() *handoverEnd {
	if g.handoverEnd == nil {
		g.handoverEnd = &handoverEnd{reached: make(chan struct{})}
	}
	end := g.handoverEnd
	g.signalHandoverEnd()
	return end
}

// signalHandoverEnd lets those go on who wait for the end of a handover.
func (g *group) signalHandoverEnd() {
	if g.handoverEnd != nil && g.elector.Handover() == (elector.Handover{}) {
		g.handoverEnd.leads = g.leadTerm != 0
		close(g.handoverEnd.reached)
		g.handoverEnd = nil
	}
}

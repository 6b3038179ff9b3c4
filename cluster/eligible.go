package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// SetFit says whether the application is fit to lead: nil that it is, as every
// node is at first, or else why it is not. A node that is not fit does not stand;
// as leader it hands over to the best follower as soon as there is one, and leads
// on until then. It votes in any case. Call it whenever a health check changes its
// mind, or always: that costs little.
func (e *Election) SetFit(unfit error) error {
	why := textOf(unfit)
	err := e.do(context.Background(), func() error {
		if (why == "") != (e.g.unfit == "") {
			e.n.log.Info("fitness", "group", e.g.name, "fit", why == "", "why", why)
		}
		e.g.unfit = why
		e.n.review(e.g)
		return nil
	})
	if err != nil {
		return fmt.Errorf("fitness of node %s in election %q: %w", e.n.cfg.Node, e.g.name, err)
	}
	return nil
}

// textOf is the text of an error of the application's, "" if it is nil. Its method
// runs here and not on the driver; that it panics, or says nothing, is no fitness.
func textOf(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("an error of type %T whose text cannot be had: %v", err, v)
		}
	}()
	return or(err.Error(), "no reason given")
}

// StepDown lets this node step down, in favor of the best follower if there is
// one, and not stand again for the given time (at most 24 h; 0 is none). Guarded work is told
// to stop and waited for, at most until the lease ends. On a node that does not
// lead only the time counts; without one the error wraps ErrNotLeader. It returns
// when the node leads no more, or when ctx ends, and then the hand-over goes on.
func (e *Election) StepDown(ctx context.Context, rest time.Duration) error {
	err := checkRest(rest)
	if err == nil {
		err = e.stepDown(ctx, rest)
	}
	if err != nil {
		return fmt.Errorf("step-down of node %s in election %q: %w", e.n.cfg.Node, e.g.name, err)
	}
	return nil
}

// maxRest bounds the rest after a step-down.
const maxRest = 24 * time.Hour

func checkRest(rest time.Duration) error {
	if rest < 0 || rest > maxRest {
		return fmt.Errorf("a rest of %s, but it must be between 0 and %s", rest, maxRest)
	}
	return nil
}

func (e *Election) stepDown(ctx context.Context, rest time.Duration) error {
	_, err := e.settle(ctx, func() error {
		if e.g.leads == 0 && rest == 0 {
			return ErrNotLeader
		}
		e.n.step(e.g, elector.Resign{Rest: rest})
		return nil
	})
	return err
}

// settle runs begin on the driver, and waits until no handover of the election is
// under way. It reports whether this node led at that moment: afterwards it may have
// been elected again.
func (e *Election) settle(ctx context.Context, begin func() error) (leads bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	var next *calm
	err = e.do(ctx, func() error {
		err := begin()
		next = e.g.awaitCalm()
		return err
	})
	if err != nil {
		return false, err
	}
	select {
	case <-next.reached:
		return next.leads, nil
	case <-e.n.driven:
		return false, ErrClosed
	case <-ctx.Done():
		return false, fmt.Errorf("under way, and going on: %w", context.Cause(ctx))
	}
}

// calm is the moment at which no handover of an election is under way.
type calm struct {
	reached chan struct{} // closed then
	leads   bool          // whether this node leads then; set before
}

// awaitCalm returns the next such moment, or the present one. It is the driver's.
func (g *group) awaitCalm() *calm {
	if g.calm == nil {
		g.calm = &calm{reached: make(chan struct{})}
	}
	next := g.calm
	g.announceCalm()
	return next
}

// announceCalm lets those go on who wait for the end of a handover.
func (g *group) announceCalm() {
	if g.calm != nil && g.machine.Handover() == (elector.Handover{}) {
		g.calm.leads = g.leads != 0
		close(g.calm.reached)
		g.calm = nil
	}
}

// review tells the machine whether this node is to stand. It runs on the driver.
func (n *Node) review(g *group) {
	if able := g.wanted() && g.unfit == "" && !g.stuck(); able != g.able {
		g.able = able
		n.step(g, elector.Eligible{Able: able})
	}
}

// wanted reports whether anybody wants this node to lead.
func (g *group) wanted() bool {
	return !g.campaigns || g.campaign != nil || g.held != nil
}

// stuck reports whether work goes on that should have stopped.
func (g *group) stuck() bool { return g.held != nil && g.held.at() == over }

package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
)

// Errors of Campaign and Run.
var (
	// ErrCampaigning means that a Campaign or Run of this election waits on this node
	// already, or that the work of its last leadership has not been said to have
	// stopped: work of one election never runs twice in one process.
	ErrCampaigning = errors.New("this node campaigns in the election already, or leads it")
	// ErrResigned is what a waiting Campaign gets when Resign is called.
	ErrResigned = errors.New("this node resigned")
	// ErrNotCandidate means that this node never stands in the election: it is no
	// voter, or NotCandidate is set.
	ErrNotCandidate = errors.New("this node is not a candidate")
)

// campaign is a Campaign that waits.
type campaign struct {
	leadership *Leadership // what it will get
	result     chan error  // nil: it leads; holds one
}

// Campaign waits until this node leads the election with time left on its lease,
// and returns the leadership. Do what only one may do under its Context, and then
// call Release, or Again to campaign on.
//
// From its first Campaign on, the node stands for election only while somebody
// campaigns or holds a leadership; ElectionConfig.AwaitCampaign lets it wait for
// that from the start.
//
// The error wraps ErrCampaigning, ErrNotCandidate, ErrResigned or ErrClosed, or is
// the cause of ctx or of the node's failure.
func (e *Election) Campaign(ctx context.Context) (*Leadership, error) {
	return e.campaign(ctx, nil)
}

// Again says that the work of this leadership, whose Context has been cancelled, has
// stopped, as Release does, and campaigns again. Unlike Release followed by
// Campaign it gives nothing up: a node whose lease only seemed to run out, or whose
// transfer came to nothing, leads on. If it fails, the leadership is released all
// the same; its errors are those of Campaign, and ErrCampaigning for a leadership
// that still serves, which it leaves as it is.
func (l *Leadership) Again(ctx context.Context) (*Leadership, error) {
	next, err := l.e.campaign(ctx, l)
	if err != nil && l.at() != serving {
		l.Release()
	}
	return next, err
}

// campaign campaigns, after the given leadership if it is not nil.
func (e *Election) campaign(ctx context.Context, after *Leadership) (*Leadership, error) {
	c := &campaign{leadership: newLeadership(ctx, e), result: make(chan error, 1)}
	err := context.Cause(ctx)
	if err == nil {
		err = e.await(ctx, c, after)
	}
	if err != nil {
		return nil, fmt.Errorf("campaign of node %s in election %q: %w", e.n.cfg.Node, e.g.name, err)
	}
	return c.leadership, nil
}

func (e *Election) await(ctx context.Context, c *campaign, after *Leadership) error {
	if err := e.do(ctx, func() error { return e.n.startCampaign(e.g, c, after) }); err != nil {
		if ctx.Err() != nil {
			e.withdraw(c)
		}
		return err
	}
	select {
	case err := <-c.result:
		return err
	case <-e.n.driven:
		return ErrClosed
	case <-ctx.Done():
		e.withdraw(c)
		return context.Cause(ctx)
	}
}

// withdraw takes a campaign back; what it got meanwhile is released.
func (e *Election) withdraw(c *campaign) {
	e.n.callBriefly(func() {
		if e.g.campaign == c {
			e.g.campaign = nil
			e.n.standBack(e.g)
			return
		}
		e.n.release(c.leadership)
	})
}

// do runs f on the driver if the election is open, and returns its error, why the
// election is not open, or the cause of ctx, as callWithin does.
func (e *Election) do(ctx context.Context, f func() error) error {
	outcome := ErrClosed
	err := e.n.callWithin(ctx, func() {
		switch {
		case e.n.Err() != nil:
			outcome = e.n.Err()
		case e.n.groups[e.g.name] == e.g && !e.g.closing:
			outcome = f()
		}
	})
	if err != nil {
		return err
	}
	return outcome
}

// startCampaign lets a campaign wait, or gives it the leadership at once. Only who held the
// last leadership can say that its work has stopped. It runs on the driver.
func (n *Node) startCampaign(g *group, c *campaign, after *Leadership) error {
	held := g.held
	switch {
	case g.campaign != nil || held != nil && (held != after || held.at() == serving):
		return ErrCampaigning
	case g.notCandidate:
		return ErrNotCandidate
	case held != nil && held.dismissed:
		return ErrResigned
	}
	g.campaign, g.campaigns = c, true
	if held != nil {
		n.release(held)
	}
	n.review(g)
	n.grant(g)
	return nil
}

// Release says that the work guarded by this leadership has stopped. If this node
// still leads it hands over to the best follower, and it does not stand again
// before the next Campaign. Releasing again does nothing.
func (l *Leadership) Release() {
	l.stop(elector.Resigned)
	l.e.n.callBriefly(func() { l.e.n.release(l) })
	l.finish(elector.Resigned) // also where the driver has ended, or hangs
}

// release ends a leadership whose work has stopped. It runs on the driver.
func (n *Node) release(l *Leadership) {
	g := l.e.g
	if g.held != l {
		return
	}
	l.finish(elector.Resigned)
	g.held = nil
	if n.closed[g.name] == g {
		delete(n.closed, g.name)
	}
	if g.leads != 0 {
		n.step(g, elector.Guard{})
	}
	n.standBack(g)
}

// standBack lets a node that nobody wants to lead any more give up what it leads,
// even for nobody's sake, and stand no more.
func (n *Node) standBack(g *group) {
	if g.leads != 0 && !g.wanted() {
		n.step(g, elector.Resign{})
	}
	n.review(g)
}

// Resign gives up what this node has in the election: a waiting Campaign, Again or
// Run fails with ErrResigned; guarded work is told to stop and waited for, at most
// until the lease ends; then the best follower leads, and this node does not stand
// again before the next Campaign. It is for those who do not hold the leadership:
// who does calls Release. It returns when the node does not lead, or when ctx ends,
// and then the hand-over goes on.
func (e *Election) Resign(ctx context.Context) error {
	_, err := e.settle(ctx, func() error { e.n.resign(e.g); return nil })
	if err != nil {
		return fmt.Errorf("resignation of node %s in election %q: %w", e.n.cfg.Node, e.g.name, err)
	}
	return nil
}

func (n *Node) resign(g *group) {
	g.campaigns = true
	g.refuse(ErrResigned)
	if g.held != nil {
		g.held.dismissed = true
	}
	if g.leads != 0 {
		n.step(g, elector.Resign{})
	}
	n.review(g)
}

// refuse ends a waiting campaign.
func (g *group) refuse(why error) {
	if g.campaign != nil {
		g.campaign.result <- why
		g.campaign = nil
	}
}

// grant gives a waiting campaign the leadership, if this node leads and has time
// left to do something. It runs on the driver.
func (n *Node) grant(g *group) {
	c := g.campaign
	if c == nil || g.held != nil || !g.leading(n.now().Add(g.margin)) || g.machine.Handover() != (elector.Handover{}) {
		return
	}
	g.campaign, g.held = nil, c.leadership
	g.held.term.Store(uint64(g.leads))
	n.step(g, elector.Guard{Held: true})
	n.warden.add(g.held)
	c.result <- nil
}

// tellWork lets guarded work know what a step brought about, before anybody else
// does. It runs on the driver.
func (n *Node) tellWork(g *group, e *elector.Effects) {
	switch {
	case g.held == nil:
	case g.leads == 0:
		// Work that was told before has until its deadline, which the warden keeps.
		if g.held.at() == serving || g.held.end() == elector.Never {
			g.held.finish(lost(e))
		}
	case e.StopWork:
		n.recall(g)
	default:
		g.held.term.Store(uint64(g.leads))
	}
}

// attend does what a step leaves to be done with campaigns and with those who wait.
// It runs on the driver, after everything else of the step, and may step again.
func (n *Node) attend(g *group) {
	g.announceCalm()
	n.review(g)
	n.grant(g)
}

// recall tells the work to stop for a handover.
func (n *Node) recall(g *group) {
	h := g.machine.Handover()
	g.held.stopBy(h.Why, h.End)
	n.warden.add(g.held)
}

// lost is why a step ended this node's leadership.
func lost(e *elector.Effects) elector.Reason {
	for _, t := range e.Transitions {
		if t.From == elector.Leader && t.To != elector.Leader {
			return t.Reason
		}
	}
	return elector.LeaseExpired
}

// ended is told by the warden that a leadership is over. Where its work has not
// stopped all the same, this node should not lead. It runs on the driver.
func (n *Node) ended(l *Leadership) {
	if g := l.e.g; g.held == l {
		n.step(g, elector.Guard{}) // what goes on now is waited for no longer
		n.log.Warn("guarded work has not stopped in time", "group", l.e.g.name, "term", l.Term(), "reason", l.Reason().String())
		n.review(l.e.g)
	}
}

package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// event is what the driver takes from its inbox: a message from a peer or, if
// do is set, something to run.
type event struct {
	from  NodeID
	group string
	msg   elector.Message
	do    func()
	// posted is the node's age when it was sent; 0 for what post did not send.
	posted time.Duration
}

// inboxSize bounds what waits for the driver. A full inbox holds up the readers
// of the links, and by that the senders: nothing is lost and nothing grows.
const inboxSize = 256

// now is the time on the node's own clock.
func (n *Node) now() elector.Time { return elector.Time(n.clock.Now()) }

// post hands e to the driver; it reports false if the driver has ended.
func (n *Node) post(e event) bool { return n.postWithin(context.Background(), e) == nil }

// postWithin is post that waits no longer than ctx for room in the inbox. The error
// is ErrClosed or the cause of ctx.
func (n *Node) postWithin(ctx context.Context, e event) error {
	e.posted = n.age()
	select {
	case n.inbox <- e:
		return nil
	case <-n.driven:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call runs f on the driver and waits for it; it reports false if the driver
// has ended.
func (n *Node) call(f func()) bool { return n.callWithin(context.Background(), f) == nil }

// callWithin is call that waits no longer than ctx, even if the driver hangs, as it
// does when the logger blocks. The error is ErrClosed or the cause of ctx. After an
// error the caller must not read what f writes: f may run still if it had begun.
// If it had not, it never will.
func (n *Node) callWithin(ctx context.Context, f func()) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ran := make(chan struct{})
	var taken atomic.Bool // by the driver, or by the caller so that f does not run
	run := func() {
		if taken.CompareAndSwap(false, true) {
			defer close(ran)
			f()
		}
	}
	if err := n.postWithin(ctx, event{do: run}); err != nil {
		return err
	}
	select {
	case <-ran:
		return nil
	case <-n.driven:
		return ErrClosed
	case <-ctx.Done():
		taken.Store(true)
		return context.Cause(ctx)
	}
}

// patience is how long a step of cleaning up may take after ctx has ended. It takes
// milliseconds unless something hangs. No call takes more than two such steps.
const patience = 500 * time.Millisecond

// callBriefly runs f on the driver whatever happens. It waits for that no longer than
// patience; a driver that hangs runs f when it goes on. It reports whether f has run.
func (n *Node) callBriefly(f func()) bool {
	ran := make(chan bool, 1)
	go func() { ran <- n.call(f) }()
	select {
	case ok := <-ran:
		return ok
	case <-time.After(patience):
		return false
	}
}

// drive owns the elections until quit.
func (n *Node) drive() {
	defer close(n.driven)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := n.untilWake()
		if wait <= 0 {
			n.measure.waits.Observe(-wait.Seconds())
			n.tick()
			wait = n.untilWake()
		}
		due := n.age() + wait
		timer.Reset(wait)
		select {
		case e := <-n.inbox:
			n.taken(&e, due)
			n.handle(&e)
		case <-timer.C: // the loop ticks
		case <-n.quit:
			return
		}
	}
}

func (n *Node) handle(e *event) {
	n.hold()
	if e.do != nil {
		e.do()
		return
	}
	if g := n.groups[e.group]; g != nil {
		n.step(g, elector.Received{From: e.from, Message: e.msg})
	}
}

// untilWake is how long the driver may sleep; not positive if a tick is due.
func (n *Node) untilWake() time.Duration {
	wake := n.agenda.next()
	if wake == elector.Never {
		return time.Hour
	}
	return wake.Sub(n.now())
}

// tick steps every machine whose time has come.
func (n *Node) tick() {
	n.hold()
	for now := n.now(); n.agenda.next() <= now; {
		g := n.agenda[0]
		n.tell(g)
		n.step(g, elector.Tick{})
	}
}

// tell lets a leader's machine know what the application issued, so that the
// next heartbeat carries it.
func (n *Node) tell(g *group) {
	if newest := g.sequencer.Newest(); g.leads != 0 && newest.Term == g.leads && newest != g.told {
		g.told = newest
		n.step(g, elector.Issued{LSN: newest})
	}
}

// stepAll steps every machine with the same input.
func (n *Node) stepAll(in elector.Input) {
	for _, g := range n.groups {
		n.step(g, in)
	}
}

// step steps one machine and acts on the effects.
func (n *Node) step(g *group, in elector.Input) {
	now, entropy := n.now(), n.entropy()
	e := g.machine.Step(now, entropy, in)
	g.wake = e.Wake
	n.agenda.moved(g)
	if err := g.publish(); err != nil {
		n.fail(err)
		return
	}
	n.tellWork(g, &e)
	n.report(g, &e)
	n.measure.stepped(g, in, &e, now)
	if e.Persist != 0 {
		n.persister.request(g.name, e.Persist)
	}
	for i := range e.Messages {
		n.mesh.Send(e.Messages[i].To, g.name, e.Messages[i].Message)
	}
	if stopped(&e) {
		n.depart(g)
		return
	}
	n.attend(g)
}

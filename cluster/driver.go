package cluster

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
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
	case <-n.driverDone:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call runs f on the driver and waits for it; it reports false if the driver
// has ended.
func (n *Node) call(f func()) bool { return n.callWithin(context.Background(), f) == nil }

// callWithin is call that waits no longer than ctx, even if the driver hangs. The error is
// ErrClosed or the cause of ctx. After an error the caller must not read what f writes: f
// may run still if it had begun. If it had not, it never will.
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
	case <-n.driverDone:
		return ErrClosed
	case <-ctx.Done():
		taken.Store(true)
		return context.Cause(ctx)
	}
}

// cleanupTimeout is how long a step of cleaning up may take after ctx has ended. It takes
// milliseconds unless something hangs. No call takes more than two such steps.
const cleanupTimeout = 500 * time.Millisecond

// waitingGroups are elections with requests for the driver, each once. Adding one never waits.
type waitingGroups struct {
	mu     sync.Mutex
	groups []*group
	ready  chan struct{} // has an element if groups is not empty
}

func (w *waitingGroups) add(g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !g.waits {
		w.groups = append(w.groups, g)
	}
	g.waits = true
	wake(w.ready)
}

func (w *waitingGroups) take() []*group {
	w.mu.Lock()
	defer w.mu.Unlock()
	groups := w.groups
	w.groups = nil
	for _, g := range groups {
		g.waits = false
	}
	return groups
}

// drive owns the elections until quit.
func (n *Node) drive() {
	defer close(n.driverDone)
	alarm := clock.NewAlarm(n.clock)
	defer alarm.Close()
	var rings elector.Time
	for {
		wait := n.untilTick()
		if wait <= 0 {
			n.testGate()
			wait = n.untilTick()
			n.measure.waits.Observe(-wait.Seconds())
			n.held(-wait)
			n.listenFirst()
			n.tick()
			wait = n.untilTick()
		}
		n.rested = n.age()
		due := n.rested + wait
		if next := n.ticks.next(); next != rings {
			alarm.Set(time.Duration(next))
			rings = next
		}
		select {
		case e := <-n.inbox:
			n.testGate()
			n.taken(&e, due)
			n.listenFirst()
			n.handle(&e)
		case <-n.waiting.ready:
			n.testGate()
			n.listenFirst()
			for _, g := range n.waiting.take() {
				n.stepRequests(g)
			}
		case <-alarm.Rings(): // the next iteration ticks
			rings = 0
		case <-n.quit:
			return
		}
	}
}

func (n *Node) handle(e *event) {
	if e.do != nil {
		e.do()
		return
	}
	if g := n.groups[e.group]; g != nil {
		n.estimate(g, e)
		draws := n.judgeClaim(g, e)
		n.step(g, elector.Received{From: e.from, Message: e.msg})
		if draws && g.follows == e.from {
			g.drawnBy = e.from
		}
		n.tune(g)
	}
}

// untilTick is how long the driver may sleep; not positive if a tick is due.
func (n *Node) untilTick() time.Duration {
	at := n.ticks.next()
	if at == elector.Never {
		return time.Hour
	}
	return at.Sub(n.now())
}

// lateFrom is how late a tick must be to count as held up: above what timers are late by.
const lateFrom = time.Millisecond

// listenFirst tells the elections whose ticks are late, but those that this node leads, that
// it was held up: what came meanwhile is to be read before they judge. It does so once for a
// deadline, so that an inbox that is never empty puts nothing off for ever.
func (n *Node) listenFirst() {
	now := n.now()
	if now.Sub(n.ticks.next()) < lateFrom {
		return
	}
	for _, t := range slices.Clone(n.ticks) {
		if late := now.Sub(t.at); late >= lateFrom && t.at != t.g.putOff && t.g.leadTerm == 0 {
			n.quality.HeldUp(now, late)
			n.step(t.g, elector.HeldUp{For: late})
			t.g.putOff = t.at
		}
	}
}

// tick steps every machine whose time has come. A leader's machine first learns what the
// application issued, so that the next heartbeat carries it.
func (n *Node) tick() {
	for now := n.now(); n.ticks.next() <= now; {
		g := n.ticks[0].g
		if newest := g.sequencer.Newest(); newest.Term == g.leadTerm && newest != g.issued {
			g.issued = newest
			n.step(g, elector.Issued{LSN: newest})
		}
		n.step(g, elector.Tick{})
	}
}

// stepAll steps every machine with the same input, in an order that a replay repeats.
func (n *Node) stepAll(in elector.Input) {
	for _, t := range slices.Clone(n.ticks) {
		n.step(t.g, in)
	}
}

// stepRequests steps a machine with what its leaderships ask of it.
func (n *Node) stepRequests(g *group) {
	if in, ok := g.nextRequest(); ok {
		n.step(g, in)
	}
}

// step steps one machine, and then with whatever its leaderships ask of it, until nothing
// is left: what a step asks for is never done within that step, because its effects are
// in buffers that the next one reuses. A step has these duties, in this order:
//
//  1. Set the next tick.
//  2. Publish the lease and tell guarded work that it must stop. This is before anything
//     is sent: no other node may learn that this one gave up while it still says that it
//     leads, and no successor may be named before the work knows.
//  3. Report transitions and anomalies, and count. An anomaly may close a link, over
//     which nothing is to be sent any more.
//  4. Ask for terms to be written, before the messages are encoded: the disk is slow.
//     The machine itself holds messages back that the write must precede.
//  5. Send.
//  6. If the machine has stopped, leave the election. This is after the goodbye is sent.
//  7. While elections are paused, keep on disk which of them this node led last.
//  8. Let those go on who wait for a handover to end.
func (n *Node) step(g *group, in elector.Input) {
	for more := true; more; in, more = g.nextRequest() {
		now, entropy := n.now(), n.entropy()
		n.recordStep(g, in)
		e := g.elector.Step(now, entropy, in)
		if n.testStep != nil {
			n.showStep(g, in, &e)
		}
		if _, resigned := in.(elector.Resign); resigned {
			g.restEnd.Store(int64(g.elector.Status().RestEnd))
		}
		if g.tick.index >= 0 { // it was not left
			n.ticks.set(&g.tick, e.Wake)
		}
		if err := g.publish(&e); err != nil {
			n.fail(err)
			return
		}
		n.report(g, &e)
		n.measure.stepped(g, in, &e, now)
		if e.Persist != (elector.Terms{}) {
			n.persister.request(g.name, e.Persist)
		}
		for i := range e.Messages {
			n.send(e.Messages[i].To, g.name, e.Messages[i].Message)
		}
		if hasStopped(&e) {
			n.leaveElection(g)
		}
		if len(e.Transitions) > 0 {
			n.noteLed()
		}
		g.signalHandoverEnd()
	}
	if l := g.overdue.Swap(nil); l != nil {
		n.log.Warn("guarded work has not stopped in time",
			"group", g.name, "term", l.Term(), "reason", l.Reason().String())
	}
}

// showStep shows a test what a step was. It shows copies: what is passed on as it is would be on
// the heap in every step.
func (n *Node) showStep(g *group, in elector.Input, e *elector.Effects) {
	effects := *e
	s := testhook.Step{
		Group: g.name, In: elector.Tick{}, Effects: &effects,
		State: g.elector.State(), Lease: g.elector.Lease(),
	}
	switch in := in.(type) {
	case elector.Start:
		s.In = in
	case elector.Received:
		s.In = in
	case elector.Died:
		s.In = in
	case elector.Persisted:
		s.In = in
	}
	n.testStep(s)
}

// hasStopped reports whether a step ended the election on this node.
func hasStopped(e *elector.Effects) bool {
	return slices.ContainsFunc(e.Transitions, func(t elector.Transition) bool {
		return t.To == elector.Dormant
	})
}

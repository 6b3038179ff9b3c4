package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

// What the tests in package cluster_test need of the inside.

var (
	Canceled  = canceled
	ErrHeldUp = errHeldUp
)

const (
	Patience = cleanupTimeout
	OpenTime = openTime
	LogRoom  = logRoom
)

// NewLogLines is how a node hands lines to its logger.
var NewLogLines = newLogLines

func (q *logLines) Logger() hclog.Logger            { return q.logger() }
func (q *logLines) Lost() uint64                    { return q.lost.Load() }
func (q *logLines) Close(ctx context.Context) error { return q.close(ctx) }

// Write makes terms durable.
type Write = func(terms map[string]elector.Terms) error

// ID is the node's name, also while its driver is held up.
func (n *Node) ID() NodeID { return n.cfg.Node }

// Mesh is what the node is connected by.
func (n *Node) Mesh() *netmesh.Mesh { return n.mesh }

// Do runs f on the driver.
func (n *Node) Do(f func()) { n.call(f) }

// Fail ends the node's part in all elections, as a failed fsync does.
func (n *Node) Fail(err error) { n.call(func() { n.fail(err) }) }

// FillInbox leaves no room in the inbox of a node whose driver is held up.
func (n *Node) FillInbox() {
	for {
		select {
		case n.inbox <- event{do: func() {}}:
		default:
			return
		}
	}
}

// Machine is the state of the default election's machine.
func (n *Node) Machine() (st elector.Status) {
	n.view(func() { st = n.groups[DefaultGroup].elector.Status() })
	return st
}

// WrapWrites replaces how the node makes terms durable from now on.
func (n *Node) WrapWrites(wrap func(Write) Write) {
	n.persister.mu.Lock()
	defer n.persister.mu.Unlock()
	n.persister.write = wrap(n.persister.write)
}

// RequestWrite asks for terms of the default election to be written.
func (n *Node) RequestWrite(t elector.Terms) { n.persister.request(DefaultGroup, t) }

// OnSend calls f with all that the node sends, before it does.
func (n *Node) OnSend(f func(m elector.Message)) {
	n.call(func() {
		send := n.send
		n.send = func(to NodeID, group string, m elector.Message) bool {
			f(m)
			return send(to, group, m)
		}
	})
}

// Hear makes the machine of the election get a message; then runs on the driver after that.
func (e *Election) Hear(from NodeID, m elector.Message, then func(elector.State)) {
	e.n.call(func() {
		e.n.step(e.g, elector.Received{From: from, Message: m})
		if then != nil {
			then(e.g.elector.State())
		}
	})
}

func (l *Leadership) Node() *Node         { return l.e.n }
func (l *Leadership) Election() *Election { return l.e }

// GiveUp ends the leadership as the end of Run's ctx does.
func (l *Leadership) GiveUp() { l.giveUp() }

// Kept is how much the node keeps of its elections: the closed ones that it still knows,
// the open ones, and the timers.
func (n *Node) Kept() (kept [3]int) {
	n.view(func() { kept = [3]int{len(n.closed), len(n.groups), len(n.ticks)} })
	return kept
}

// ProcessOf is what the node knows of the newest process of a voter.
func (n *Node) ProcessOf(id NodeID) (boot uint64, since elector.Time) {
	n.call(func() { boot, since = n.processes[id].boot, n.processes[id].since })
	return boot, since
}

// CutWork counts the leaderships whose work may go on although their election has ended.
func (n *Node) CutWork() (count int) {
	n.call(func() { count = len(n.cutWork) })
	return count
}

// BeginTransfer begins to hand the default election over. The returned function waits
// for the end, and reports whether the node still led then.
func (n *Node) BeginTransfer(to NodeID) (wait func() bool) {
	var ended *handoverEnd
	n.call(func() {
		g := n.groups[DefaultGroup]
		n.step(g, elector.Transfer{To: to})
		ended = g.awaitHandoverEnd()
	})
	return func() bool { <-ended.reached; return ended.leads }
}

// EnterCampaign is the first half of Campaign, or of Again if after is not nil.
func (e *Election) EnterCampaign(ctx context.Context, after *Leadership) (*Leadership, error) {
	if after == nil {
		return e.enterCampaign(ctx, 0)
	}
	return e.enterCampaign(ctx, after.id)
}

// PublishNothing ends a step that brought about nothing. It is called on the driver.
func (e *Election) PublishNothing() error { return e.g.publish(&elector.Effects{}) }

// Answer is what the campaign for the leadership gets.
func (l *Leadership) Answer() <-chan error { return l.answer }

// Count is how many values a histogram has.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Below is how many values were at most bound.
func (h Histogram) Below(bound float64) (n uint64) {
	for i, b := range h.Bounds {
		if b <= bound {
			n += h.Counts[i]
		}
	}
	return n
}

// UntilTick is how long the driver, which calls it, may sleep.
func (n *Node) UntilTick() time.Duration { return n.untilTick() }

package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

// What the tests in package cluster_test need of the inside.

var (
	Canceled  = canceled
	ErrHeldUp = loop.ErrHeldUp
)

const (
	Patience = loop.CleanupTime
	OpenTime = loop.OpenTime
	LogRoom  = logRoom
)

// NewLogLines is how a node hands lines to its logger.
var NewLogLines = newLogLines

func (q *logLines) Logger() hclog.Logger            { return q.logger() }
func (q *logLines) Lost() uint64                    { return q.lost.Load() }
func (q *logLines) Close(ctx context.Context) error { return q.close(ctx) }

// ID is the node's name, also while its driver is held up.
func (n *Node) ID() NodeID { return n.cfg.Node }

// Mesh is what the node is connected by.
func (n *Node) Mesh() *netmesh.Mesh { return n.mesh }

// Do runs f on the driver.
func (n *Node) Do(f func()) { n.drive(func(*loop.Driver) { f() }) }

func (n *Node) drive(f func(*loop.Driver)) {
	_ = n.loop.Do(context.Background(), func(d *loop.Driver) error { f(d); return nil })
}

// Fail ends the node's part in all elections, as a failed fsync does.
func (n *Node) Fail(err error) { n.drive(func(d *loop.Driver) { d.Fail(err) }) }

// FillInbox leaves no room in the inbox of a node whose driver is held up.
func (n *Node) FillInbox() {
	for n.loop.InboxLength() < loop.InboxSize {
		n.loop.Received("nobody", "nothing", elector.Message{})
	}
}

// Hear hands the node a message of a member, as the mesh does, and waits until it is handled.
func (n *Node) Hear(from NodeID, group string, m elector.Message) {
	n.loop.Received(from, group, m)
	n.Do(func() {})
}

// Machine is the state of the default election's machine.
func (n *Node) Machine() elector.Status { return n.loop.Snapshot(n.election.p).Status }

// OnSend calls f with all that the node sends, before it does.
func (n *Node) OnSend(f func(m elector.Message)) {
	n.drive(func(d *loop.Driver) { d.Mesh = watchedMesh{d.Mesh, f} })
}

type watchedMesh struct {
	loop.Mesh
	sends func(elector.Message)
}

func (w watchedMesh) Send(to NodeID, group string, m elector.Message) bool {
	w.sends(m)
	return w.Mesh.Send(to, group, m)
}

// Hear hands the machine of the election a message, and calls then, if not nil, on the driver
// right after that.
func (e *Election) Hear(from NodeID, m elector.Message, then func()) {
	e.n.drive(func(d *loop.Driver) {
		d.Step(e.p, elector.Received{From: from, Message: m})
		if then != nil {
			then()
		}
	})
}

func (l *Leadership) Node() *Node         { return l.e.n }
func (l *Leadership) Election() *Election { return l.e }

// GiveUp ends the leadership as the end of Run's ctx does.
func (l *Leadership) GiveUp() { l.giveUp() }

// EnterCampaign is the first half of Campaign.
func (e *Election) EnterCampaign(ctx context.Context) (*Leadership, error) {
	return e.enterCampaign(ctx, 0, func(leadership.Refusal) {})
}

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

// HoldUp runs f on the driver, and tells it how long that was to sleep.
func (n *Node) HoldUp(f func(wait time.Duration)) {
	n.drive(func(d *loop.Driver) { f(d.UntilTick()) })
}

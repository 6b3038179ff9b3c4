package kubelock

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/bmqelect/bmqelect/cluster"
)

// Lock is a resource lock for one manager of controller-runtime, or one LeaderElector of
// client-go. It leads once: when that leadership is over, the manager ends, and the next one gets a
// Lock of its own. All methods are safe for concurrent use.
type Lock struct {
	node     *cluster.Node
	id       cluster.NodeID // its name
	election *cluster.Election
	overdue  func(*cluster.Leadership)
	ctx      context.Context // of NewLock
	work     context.Context // what Context returns
	stopWork context.CancelCauseFunc

	mu      sync.Mutex     // guards the fields below
	changed chan struct{}  // closed, and replaced, when one of them has changed
	leader  cluster.Leader // whom the node follows, or the node itself
	since   time.Time      // when it was first seen
	shown   string         // the holder in the newest record that Get has returned
	orderly bool           // Context was called: work is told by it to stop
	serving bool           // serve runs
	failed  error          // why the newest one has ended; nil if nobody took what it had won
	held    *tenure        // nil if the node has no leadership for this Lock
}

var _ resourcelock.Interface = (*Lock)(nil)

// NewLock returns a lock on an election that is open on node; cluster.DefaultGroup is the default
// one. The node does not campaign before the manager asks. While it waits for leadership it stands
// until ctx ends; what it leads does not end with ctx: see Context.
//
// overdue is called, on a goroutine of its own, if the leadership is over and the manager has not
// said by then that its work has stopped. From that moment another manager may work. overdue must
// end the process, or return only when the work has stopped. With nil, the process exits with
// status 1.
//
// The error wraps cluster.ErrNotOpen, or is why the node has ended.
func NewLock(
	ctx context.Context, node *cluster.Node, group string, overdue func(*cluster.Leadership),
) (*Lock, error) {
	e, err := node.Lookup(group)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if overdue == nil {
		overdue = exit
	}
	k := &Lock{
		node: node, id: node.Status().Node, election: e, overdue: overdue, ctx: ctx,
		changed: make(chan struct{}),
	}
	k.work, k.stopWork = context.WithCancelCause(ctx)
	go k.observe()
	return k, nil
}

// Context returns the context to start the manager with. It ends with the ctx of NewLock, when the
// leadership must stop (its cause is a *cluster.EndedError then), and when the node has ended. With
// it, the manager stops its work in order, and the next manager begins as soon as that has
// happened. Call it before the manager starts: without it the manager is told to stop by an Update
// that fails.
func (k *Lock) Context() context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.orderly = true
	return k.work
}

// Leadership returns the leadership under which the manager works, for fencing tokens and more; nil
// if it does not work.
func (k *Lock) Leadership() *cluster.Leadership {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil || !k.held.taken {
		return nil
	}
	return k.held.Leadership
}

// observe keeps track of the leader until the lock's context or the election ends.
func (k *Lock) observe() {
	for leader := range k.election.Observe(k.ctx) {
		k.mu.Lock()
		k.leader, k.since = leader, time.Now()
		k.tell()
		k.mu.Unlock()
	}
	k.stopWork(cmp.Or(context.Cause(k.ctx), k.node.Err(), cluster.ErrClosed))
}

// tell wakes whoever waits for a change; mu is held.
func (k *Lock) tell() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// exit is what happens if nobody says otherwise, as in client-go's own examples.
func exit(l *cluster.Leadership) {
	klog.Background().Error(context.Cause(l.Context()),
		"The leadership is over, and its work goes on: this process exits")
	klog.FlushAndExit(klog.ExitFlushTimeout, 1)
}

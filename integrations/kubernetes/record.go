package kubelock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/bmqelect/bmqelect/cluster"
)

// recordLease is for how long client-go believes a record. It asks again before it does anything,
// so this only has to be longer than that takes.
const recordLease = time.Hour

// Identity is the node's name.
func (k *Lock) Identity() string { return string(k.id) }

// Describe names the election and the node, for log lines.
func (k *Lock) Describe() string {
	return fmt.Sprintf("election %q on node %s", k.election.Group(), k.id)
}

// RecordEvent logs what client-go says, if its verbosity is 2 or more. There is no object to which
// an event could belong.
func (k *Lock) RecordEvent(event string) {
	klog.Background().V(2).Info("Leader election", "lock", k.Describe(), "event", event)
}

// Get returns who leads. The first call lets the node campaign. A manager that does not lead has
// nothing to do before that changes, so Get waits until another node leads than the last time, or
// until this one does; or until ctx ends. The holder is this node only while the manager may work.
// LeaderTransitions is the term.
func (k *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		if err := k.begin(); err != nil {
			return nil, nil, err
		}
		holder := k.holder()
		if k.held != nil || holder != "" && (holder != k.shown || ctx.Err() != nil) {
			k.shown = holder
			return k.record(holder)
		}
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("%s: nobody leads: %w", k.Describe(), context.Cause(ctx))
		}
		k.wait(ctx)
		if k.failed != nil {
			return nil, nil, k.failed
		}
	}
}

// wait waits, without the mutex, for a change of what it guards.
func (k *Lock) wait(ctx context.Context) {
	changed := k.changed
	k.mu.Unlock()
	defer k.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// holder is who leads; mu is held. This node does only while the manager may work.
func (k *Lock) holder() string {
	own := k.Identity()
	switch {
	case k.held != nil && k.held.excludes(k.orderly):
		return own
	case k.leader.Node == k.id:
		return ""
	}
	return string(k.leader.Node)
}

func (k *Lock) record(holder string) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r := &resourcelock.LeaderElectionRecord{
		HolderIdentity: holder, LeaseDurationSeconds: int(recordLease / time.Second),
		AcquireTime: metav1.NewTime(k.since), RenewTime: metav1.Now(),
		LeaderTransitions: int(k.leader.Term),
	}
	raw, err := json.Marshal(r)
	return r, raw, err
}

// Create is Update.
func (k *Lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return k.Update(ctx, r)
}

// Update begins or renews the work of the manager if the holder is this node. It fails unless the
// node has a leadership now; the error wraps cluster.ErrNotLeader. If client-go has not renewed for
// LeaseDuration the node gives the leadership up.
//
// Without a holder (ReleaseOnCancel) it says that the work has stopped, and returns when another
// node may lead, or when ctx ends. client-go says so, too, when an Update has failed, without
// waiting for the work: such a message is ignored, and the leadership goes on to its deadline.
func (k *Lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	switch r.HolderIdentity {
	case k.Identity():
		return k.renew(time.Duration(r.LeaseDurationSeconds) * time.Second)
	case "":
		return k.release(ctx)
	}
	return fmt.Errorf("%s: the holder must be %q, or empty to release the lock, not %q",
		k.Describe(), k.Identity(), r.HolderIdentity)
}

func (k *Lock) renew(lease time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.begin(); err != nil {
		return err
	}
	if k.held == nil {
		return fmt.Errorf("%s: %w", k.Describe(), cluster.ErrNotLeader)
	}
	if err := k.held.renew(k.orderly, lease); err != nil {
		return fmt.Errorf("%s: %w", k.Describe(), err)
	}
	return nil
}

func (k *Lock) release(ctx context.Context) error {
	k.mu.Lock()
	ours := k.held != nil && k.held.stopped()
	k.mu.Unlock()
	if !ours {
		return nil
	}
	if err := k.election.Resign(ctx); !errors.Is(err, cluster.ErrClosed) {
		return err
	}
	return nil
}

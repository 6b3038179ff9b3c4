package kubelock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/bmqelect/bmqelect/cluster"
)

// ErrOver means that a Lock has led already: its manager must end, and another one needs a new
// Lock.
var ErrOver = errors.New("this lock has led once, and serves no other manager: " +
	"end the process, or make a new lock with NewLock")

const (
	// patience is for how long a leadership is kept that no manager takes. One that waits takes it
	// at once, unless client-go just pauses between two calls: for 4.4 s at most, by default.
	patience = 5 * time.Second
	// errorPause keeps client-go from logging the same error many times a second.
	errorPause = time.Second
)

// tenure is a leadership that this node has for a Lock. The Lock's mutex guards its fields.
type tenure struct {
	*cluster.Leadership
	taken   bool          // the manager was told that it leads, and works
	begun   chan struct{} // closed then
	refused bool          // after that it was told that it does not
	ended   bool          // it has said that its work has stopped
	idle    chan struct{} // closed then
	renewal *time.Timer   // gives the leadership up
	lease   time.Duration // after which that timer fires
}

// begin lets the node campaign, unless it does; mu is held.
func (k *Lock) begin() error {
	if errors.Is(k.failed, ErrOver) {
		return k.failed
	}
	if !k.serving {
		k.serving, k.failed = true, nil
		go k.serve()
	}
	return nil
}

// serve campaigns until the manager has led once, nobody takes a leadership, or a campaign fails.
func (k *Lock) serve() {
	l, err := k.election.Campaign(k.ctx)
	for err == nil {
		t := k.hold(l)
		if k.await(t) {
			k.see(t)
			err = fmt.Errorf("%s: %w", k.Describe(), ErrOver)
			break
		}
		if k.ctx.Err() != nil || l.Context().Err() == nil {
			l.Release() // nobody works, and nobody asks
			break
		}
		l, err = l.Again(k.ctx)
	}
	if err != nil && !errors.Is(err, ErrOver) {
		select {
		case <-time.After(errorPause):
		case <-k.ctx.Done():
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.serving, k.failed, k.held = false, err, nil
	k.tell()
}

// hold offers a leadership to the manager.
func (k *Lock) hold(l *cluster.Leadership) *tenure {
	t := &tenure{Leadership: l, begun: make(chan struct{}), idle: make(chan struct{})}
	t.renewal = time.AfterFunc(time.Hour, func() { k.lapse(t) })
	t.renewal.Stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = t
	k.tell()
	return t
}

// await waits until the manager takes a leadership, and reports whether it does. If not, it cannot
// take it later.
func (k *Lock) await(t *tenure) bool {
	select {
	case <-t.begun:
	case <-t.Context().Done():
	case <-k.ctx.Done():
	case <-time.After(patience):
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !t.taken {
		k.held = nil
		k.tell()
	}
	return t.taken
}

// see watches over a leadership under which the manager works, to its end.
func (k *Lock) see(t *tenure) {
	select {
	case <-t.Context().Done():
		k.stopWork(context.Cause(t.Context()))
	case <-t.idle:
	}
	select {
	case <-t.idle:
	case <-t.Done():
		k.mu.Lock()
		late := !t.ended
		k.mu.Unlock()
		if late {
			k.overdue(t.Leadership)
		}
	}
	t.renewal.Stop()
	t.Release()
}

// lapse gives up a leadership that client-go has not renewed: it hangs, or was ended without
// ReleaseOnCancel.
func (k *Lock) lapse(t *tenure) {
	klog.Background().Error(nil, "The leadership was not renewed, and is given up",
		"lock", k.Describe(), "leaseDuration", t.lease)
	_ = k.election.Resign(t.Context()) // which ends as soon as the work was told to stop
}

// excludes reports whether the manager may work. If nothing else tells it to stop, it may not from
// the moment when it must stop.
func (t *tenure) excludes(orderly bool) bool {
	return t.Valid() && (orderly || t.Context().Err() == nil)
}

// renew lets the manager begin or go on.
func (t *tenure) renew(orderly bool, lease time.Duration) error {
	if !t.excludes(orderly) {
		t.refused = t.taken
		if cause := context.Cause(t.Context()); cause != nil {
			return fmt.Errorf("%w: %w", cluster.ErrNotLeader, cause)
		}
		return cluster.ErrNotLeader
	}
	if !t.taken {
		t.taken = true
		close(t.begun)
	}
	t.lease = lease + time.Second // client-go rounds it down to seconds
	t.renewal.Reset(t.lease)
	return nil
}

// stopped notes that the manager's work has stopped, and reports whether that is known. It is not
// after a refusal: client-go releases the lock then before it tells the work to stop.
func (t *tenure) stopped() bool {
	if !t.taken || t.refused || t.ended {
		return false
	}
	t.ended = true
	close(t.idle)
	return true
}

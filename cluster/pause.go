package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
)

// maxPause bounds a pause.
const maxPause = 24 * time.Hour

// ErrPaused means that elections are paused on this node, so that it hands leadership over
// to a named node only.
var ErrPaused = errors.New("elections are paused")

// Pause keeps leadership where it is, in all elections of this node, for the given time (at
// most 24 h): during maintenance, for example. It replaces the pause before. Call it on
// every voter. Until it ends, the node does not stand, unless it led last: then it leads
// again after a loss of its quorum or a restart. It still votes, and a leader whose lease
// ends still steps down. A leader hands over to the target of a Transfer only: StepDown
// fails, takeovers and unfitness wait, and when it resigns or is closed it names no
// successor.
//
// When Pause returns nil the pause is on disk and outlives the process, by the wall clock,
// but never by more than its whole length after a start. If the node is closed, it fails
// with ErrClosed, and when ctx ends first, with its cause: the pause may hold then.
func (n *Node) Pause(ctx context.Context, d time.Duration) error {
	err := fmt.Errorf("for %s, but it must be positive and at most %s", d, maxPause)
	if d > 0 && d <= maxPause {
		err = n.savedPause(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("pause of elections on node %s: %w", n.cfg.Node, err)
	}
	n.log.Info("elections paused", "for", d)
	return nil
}

// Resume ends a pause of this node: a node without a leader stands after a random wait.
// It returns as Pause does. Without a pause it does nothing.
func (n *Node) Resume(ctx context.Context) error {
	if err := n.savedPause(ctx, 0); err != nil {
		return fmt.Errorf("end of the pause of node %s: %w", n.cfg.Node, err)
	}
	n.log.Info("elections resumed")
	return nil
}

// savedPause begins a pause, or ends it if d is 0, and waits until that is on disk.
func (n *Node) savedPause(ctx context.Context, d time.Duration) error {
	saved := make(chan error, 1)
	outcome := ErrClosed
	err := n.callWithin(ctx, func() {
		if outcome = n.Err(); outcome == nil {
			n.stepAll(elector.Pause{For: d})
			n.setPause(pause{store.Pause{Until: time.Now().Add(d), For: d}, n.now().Add(d)}, saved)
		}
	})
	switch {
	case err != nil:
		return err
	case outcome != nil:
		return outcome
	}
	select {
	case err := <-saved:
		return err
	case <-n.persisterDone:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("it is not on disk yet: %w", context.Cause(ctx))
	}
}

// pause is the pause of a node, which may be over. It never changes.
type pause struct {
	store.Pause

	end elector.Time
}

// setPause replaces the pause, and lets it be written beside the driver, on which it runs.
// The outcome of the write goes to saved, which has room for it.
func (n *Node) setPause(p pause, saved chan<- error) {
	p.Led = n.ledLast(p.Led)
	n.paused.Store(&p)
	n.persister.note(func() error {
		record := &p.Pause
		if p.For == 0 {
			record = nil
		}
		err := n.timed(func() error { return n.store.SavePause(record) })
		saved <- err
		return err
	})
}

// ledLast are the elections that this node led last. Of those that are not open it knows
// what was so before. It runs on the driver.
func (n *Node) ledLast(before []string) (led []string) {
	for _, name := range before {
		if n.groups[name] == nil {
			led = append(led, name)
		}
	}
	for name, g := range n.groups {
		last := g.elector.State().Turns.LedLast
		if g.ledLast.Store(last); last {
			led = append(led, name)
		}
	}
	slices.Sort(led)
	return led
}

// noteLed keeps on disk which elections this node led last, while they are paused. It runs
// on the driver, after each transition.
func (n *Node) noteLed() {
	if n.pauseLeft() == 0 {
		return
	}
	p := *n.paused.Load()
	if !slices.Equal(n.ledLast(p.Led), p.Led) {
		n.setPause(p, make(chan error, 1))
	}
}

// loadPause takes up the pause that is on disk.
func (n *Node) loadPause() {
	if p, now := n.store.Pause(), time.Now(); p.Left(now) > 0 {
		left := p.Left(now)
		n.log.Info("elections are paused", "for", left)
		rest := store.Pause{Until: now.Add(left), For: p.For, Led: p.Led}
		n.paused.Store(&pause{rest, n.now().Add(left)})
	}
}

// enterPaused begins to take part in an election, paused if the node is.
func (n *Node) enterPaused(g *group) (led bool) {
	if left := n.pauseLeft(); left > 0 {
		n.step(g, elector.Pause{For: left})
		led = slices.Contains(n.paused.Load().Led, g.name)
	}
	return led
}

// pauseLeft is how long elections are paused on this node; 0 if they are not.
func (n *Node) pauseLeft() time.Duration {
	if p := n.paused.Load(); p != nil {
		return max(p.end.Sub(n.now()), 0)
	}
	return 0
}

// pausedUntil is the end of the pause by the wall clock; zero if elections are not paused.
func (n *Node) pausedUntil() time.Time {
	if n.pauseLeft() == 0 {
		return time.Time{}
	}
	return n.paused.Load().Until.UTC().Truncate(time.Second)
}

// pauseError says until when elections are paused; nil if they are not.
func (n *Node) pauseError() error {
	if n.pauseLeft() == 0 {
		return nil
	}
	return fmt.Errorf("%w until %s", ErrPaused, n.pausedUntil().Format(time.RFC3339))
}

// refuseUnnamed is the error for a handover to nobody in particular; nil if elections are
// not paused.
func (n *Node) refuseUnnamed() error {
	if err := n.pauseError(); err != nil {
		return fmt.Errorf("%w: resume them, or transfer to a named node", err)
	}
	return nil
}

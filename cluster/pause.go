package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
)

// maxPause bounds a pause.
const maxPause = 24 * time.Hour

// ErrPaused means that elections are paused on this node, so that it hands leadership over
// to a named node only.
var ErrPaused = loop.ErrPaused

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
		err = n.loop.Pause(ctx, d)
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
	if err := n.loop.Pause(ctx, 0); err != nil {
		return fmt.Errorf("end of the pause of node %s: %w", n.cfg.Node, err)
	}
	n.log.Info("elections resumed")
	return nil
}

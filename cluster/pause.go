package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
)

// maxPause bounds a pause.
const maxPause = 24 * time.Hour

// ErrPaused means that elections are paused on this node: it hands leadership over to a named node
// only.
var ErrPaused = loop.ErrPaused

// Pause keeps leadership where it is, in all elections of this node, for the given time (at most
// 24 h), for example during maintenance. It replaces an earlier pause. Call it on every voter.
// Until the pause ends the node does not stand, except if it led last: then it leads again after it
// lost its quorum or was restarted. It still votes, and a leader whose lease ends still steps down.
// A leader hands over to the target of a Transfer only: StepDown fails, takeovers and unfitness
// wait, and when it resigns or is closed it names no successor.
//
// When Pause returns nil the pause is on disk and outlives the process. It ends by the wall clock,
// and at most its whole length after a restart. The error wraps ErrClosed, is the node's failure,
// or is the cause of ctx: the pause may be in effect then.
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

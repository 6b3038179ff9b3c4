package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// faults describes the failures of Config.Faults that are in effect; "" if there are none.
func (n *Node) faults() string {
	if n.cfg.Faults == nil {
		return ""
	}
	return strings.TrimPrefix(n.cfg.Faults.String(), "none")
}

// Forget makes this node accept the next process of another node's name, whatever its data
// directory. It is for a machine that is gone for good, and whose end the network did not show.
// Without it, a new data directory under the old name is refused for as long as the old process
// may live.
//
// It fails, and changes nothing, if id is this node or no member, or if there is a link to id. It
// also fails if less time has passed since the last link was lost, or since this node was started,
// than the longest promise of its elections binds: lease x (1 + drift). Two processes of one name
// could vote twice: call Forget on every node, and only when the old process is gone and its data
// directory is never used again.
func (n *Node) Forget(ctx context.Context, id NodeID) error {
	err := context.Cause(ctx)
	if err == nil {
		err = n.forget(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("node %s forgets node %s: %w", n.cfg.Node, id, err)
	}
	return nil
}

func (n *Node) forget(ctx context.Context, id NodeID) error {
	if id == n.cfg.Node {
		return errors.New("that is this node")
	}
	known := func(m MemberStatus) bool { return m.Node == id }
	if !slices.ContainsFunc(n.memberStatus(n.cfg.Voters), known) {
		return errors.New("no member has that name")
	}
	promise, err := n.loop.LongestPromise(ctx)
	if err != nil {
		return err
	}
	if err := n.mesh.Forget(id, promise); err != nil {
		return err
	}
	n.diagnosis.Forget(id)
	return nil
}

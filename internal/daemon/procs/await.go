package procs

import (
	"context"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// pollEvery is the pause between two questions to the nodes.
const pollEvery = 20 * time.Millisecond

// Status asks the node's process for its status.
func (n *Node) Status(ctx context.Context) (cluster.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c := n.Client()
	defer c.Close()
	return c.Status(ctx)
}

// Agree waits until the given nodes all report the same leader and term, the
// leader leads with a valid lease and satisfies accept (nil: any will do), and
// returns its view. The error tells what they said last.
func Agree(ctx context.Context, nodes []*Node, accept func(cluster.GroupStatus) bool) (cluster.GroupStatus, error) {
	for {
		leader, said := survey(ctx, nodes)
		if leader != nil && (accept == nil || accept(*leader)) {
			return *leader, nil
		}
		select {
		case <-ctx.Done():
			return cluster.GroupStatus{}, fmt.Errorf("no agreed leader; the nodes said:%s\n%w", said, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// survey asks every node; leader is nil unless they agree on one.
func survey(ctx context.Context, nodes []*Node) (leader *cluster.GroupStatus, said string) {
	agreed := true
	var first *cluster.GroupStatus
	for _, n := range nodes {
		st, err := n.Status(ctx)
		if err != nil {
			said += fmt.Sprintf("\n  %s: %s", n.Name, err)
			agreed = false
			continue
		}
		g := &st.Groups[0]
		said += fmt.Sprintf("\n  %s: %s term=%d leader=%s: %s", n.Name, g.Role, g.Term, g.Leader, g.Explanation)
		if first == nil {
			first = g
		}
		agreed = agreed && g.Leader == first.Leader && g.Term == first.Term
		if g.Leading {
			leader = g
		}
	}
	if !agreed {
		leader = nil
	}
	return leader, said
}

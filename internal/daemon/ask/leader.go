package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

// NoLeaderError is the error if no node leads an election.
type NoLeaderError struct {
	Node cluster.NodeID // a node that was asked
	Why  string         // its explanation
}

// Error quotes the node.
func (e NoLeaderError) Error() string {
	return fmt.Sprintf("no node leads now; %s says: %s", e.Node, e.Why)
}

// search looks for the node that says that it leads an election, and ends as soon as it is found.
// Of the nodes that were asked before, others answered, and silent did not.
func (c *Cluster) search(
	ctx context.Context, group string,
) (leader Answer, others, silent []Answer, err error) {
	defer c.of(group)()
	err = c.walk(ctx, false, func(a Answer) bool {
		switch {
		case a.silent():
			silent = append(silent, a)
		case admin.GroupIn(*a.Status, group).Leading:
			leader = a
		default:
			others = append(others, a)
		}
		return leader.answered()
	})
	if err == nil && leader.silent() && len(others) == 0 {
		err = noAnswerOf(silent)
	}
	return leader, others, silent, err
}

// AtLeader finds the node that leads an election, without waiting for the others, and returns a
// client for it; with passed, for one that follows it, if the leader cannot be asked from here.
// Beside a NoLeaderError, passed returns the node that knows the newest record.
func (c *Cluster) AtLeader(ctx context.Context, group string, passed bool) (
	cluster.NodeID, *admin.Client, error,
) {
	leader, others, silent, err := c.search(ctx, group)
	if err == nil && leader.silent() {
		follows := func(a Answer) bool { return admin.GroupIn(*a.Status, group).Leader != "" }
		if i := slices.IndexFunc(others, follows); passed && i >= 0 {
			return others[i].Node, c.client(others[i]), nil
		}
		err = cmp.Or(unasked(others, silent, group), noLeaderAmong(others, group))
		if passed && errors.As(err, new(NoLeaderError)) {
			known := slices.MaxFunc(others, func(a, b Answer) int {
				return recordIn(a, group).Committed.Compare(recordIn(b, group).Committed)
			})
			return known.Node, c.client(known), err
		}
	}
	if err != nil {
		return "", nil, err
	}
	return leader.Node, c.client(leader), nil
}

// unasked is an error if a node that answered follows a leader that did not answer.
func unasked(others, silent []Answer, group string) error {
	for _, a := range others {
		l := admin.LeaderIn(*a.Status, group)
		if l.Leader == "" || find(others, l.Leader) != nil {
			continue
		}
		why := cmp.Or(l.AdminAddr, "no address of it is known")
		if there := find(silent, l.Leader); there != nil {
			why = there.Error
		}
		return fmt.Errorf("%s leads, as %s says, but its admin side cannot be asked (%s): name it "+
			"with --admin, or give it an admin-addr that others reach", l.Leader, a.Node, why)
	}
	return nil
}

// Leader returns the leader of an election: the node that says so itself, or else the one that
// others follow and that cannot be asked from here. With a NoLeaderError it returns what is known
// of the election.
func (c *Cluster) Leader(ctx context.Context, group string) (admin.Leader, error) {
	leader, others, _, err := c.search(ctx, group)
	switch {
	case err != nil:
		return admin.Leader{}, err
	case leader.answered():
		return admin.LeaderIn(*leader.Status, group), nil
	}
	defer c.of(group)()
	var named admin.Leader
	for _, a := range others {
		// Waiting for silent nodes took time: what this one said may be old.
		now := Answer{Node: a.Node, via: a.via, given: a.given}
		if c.ask(ctx, &now); now.silent() {
			continue
		}
		l := admin.LeaderIn(*now.Status, group)
		if admin.GroupIn(*now.Status, group).Leading {
			return l, nil
		}
		if l.Leader != "" && find(others, l.Leader) == nil && l.Term >= named.Term {
			named = l
		}
	}
	if named.Leader == "" {
		g := admin.GroupIn(*others[0].Status, group)
		named = admin.Leader{Group: group, Term: g.Term, LSN: g.LSN, Reason: g.Explanation}
		return named, noLeaderAmong(others, group)
	}
	return named, nil
}

// Confirm returns the leader of an election, once a quorum of the voters has confirmed it.
func (c *Cluster) Confirm(ctx context.Context, group string) (admin.Leader, error) {
	_, client, err := c.AtLeader(ctx, group, false)
	if err != nil {
		return admin.Leader{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return client.Confirm(ctx, group)
}

func noLeaderAmong(others []Answer, group string) error {
	first := others[0]
	why := admin.GroupIn(*first.Status, group).Explanation
	if why == "" {
		return config.Usage(fmt.Errorf("%s takes part in no election %q", first.Node, group))
	}
	return NoLeaderError{Node: first.Node, Why: why}
}

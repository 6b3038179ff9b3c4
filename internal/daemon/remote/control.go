package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

// Cut cuts the link between two nodes, in both directions, and returns those that did.
func (c *Cluster) Cut(ctx context.Context, a, b cluster.NodeID) ([]Answer, error) {
	if a == b {
		return nil, config.Usage(fmt.Errorf(
			"a node has no link to itself: name two nodes, not %s twice", a))
	}
	answers, err := c.members(ctx, a, b)
	if err != nil {
		return nil, err
	}
	// Both ends drop, so that even frames on their way are lost. One end alone is enough
	// for the link.
	told, one := c.fault(ctx, answers, a, admin.FaultRequest{Cut: []cluster.NodeID{b}})
	also, other := c.fault(ctx, answers, b, admin.FaultRequest{Cut: []cluster.NodeID{a}})
	if one != nil && other != nil {
		return nil, errors.Join(one, other)
	}
	return append(told, also...), nil
}

// Isolate cuts every link of a node, in both directions, and returns that node.
func (c *Cluster) Isolate(ctx context.Context, id cluster.NodeID) ([]Answer, error) {
	answers, err := c.members(ctx, id)
	if err != nil {
		return nil, err
	}
	var others []cluster.NodeID
	for _, a := range answers {
		if a.Node != id {
			others = append(others, a.Node)
		}
	}
	return c.fault(ctx, answers, id, admin.FaultRequest{Cut: others})
}

// Heal heals every link, and returns the nodes that did.
func (c *Cluster) Heal(ctx context.Context) (told []Answer, err error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, a := range answers {
		if a.Status == nil {
			errs = append(errs, fmt.Errorf("%s does not answer: what is cut there stays cut (%s)",
				a.Node, a.Error))
			continue
		}
		one, err := c.fault(ctx, answers, a.Node, admin.FaultRequest{HealAll: true})
		told, errs = append(told, one...), append(errs, err)
	}
	return told, errors.Join(errs...)
}

// members are the answers of all nodes, of which some must be.
func (c *Cluster) members(ctx context.Context, some ...cluster.NodeID) ([]Answer, error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	var members []cluster.NodeID
	for _, a := range answers {
		members = append(members, a.Node)
	}
	slices.Sort(members)
	for _, id := range some {
		if !slices.Contains(members, id) {
			return nil, config.Usage(fmt.Errorf("there is no node %q, but %s", id,
				words.List(members)))
		}
	}
	return answers, nil
}

// fault changes the faults of one node, and returns it.
func (c *Cluster) fault(
	ctx context.Context, answers []Answer, id cluster.NodeID, req admin.FaultRequest,
) ([]Answer, error) {
	at := answers[slices.IndexFunc(answers, func(a Answer) bool { return a.Node == id })]
	if at.via == "" {
		return nil, fmt.Errorf("%s: its admin address is not known", id)
	}
	client := c.client(at)
	defer client.Close()
	st, err := client.Faults(ctx, req)
	if err != nil {
		return nil, err
	}
	return []Answer{{Node: id, Addr: at.Addr, Faults: st.Faults}}, nil
}

// ErrNothingToForget means that the name of a node is in use, as it should be once a machine has
// been replaced.
var ErrNothingToForget = errors.New("there is nothing to forget")

// Forget lets the members take in the next process that has a node's name, and returns those
// that do, each with its status then. It does nothing
// if a member shows that the present process lives, or if one that runs cannot be asked.
// With here only the node at the given address is told, and the others may be silent.
func (c *Cluster) Forget(ctx context.Context, id cluster.NodeID, here bool) (told []Answer,
	err error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	silent := func(a Answer) bool { return a.Status == nil }
	answered := slices.DeleteFunc(slices.Clone(answers), silent)
	targets, err := withoutLink(answered, id)
	if err == nil && !here {
		err = allAnswered(answers, answered, id)
	}
	if err != nil {
		return nil, err
	}
	if here {
		elsewhere := func(a Answer) bool { return a.Node != answered[0].Node }
		targets = slices.DeleteFunc(targets, elsewhere)
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: every node that was asked has a link to node %s, so a process "+
			"that runs has its name; to give the name to another, stop that one first",
			ErrNothingToForget, id)
	}
	var errs []error
	for _, a := range targets {
		one, err := c.tell(ctx, a, func(ctx context.Context, client *admin.Client) (
			cluster.Status, error,
		) {
			return client.Forget(ctx, admin.ForgetRequest{Node: id})
		})
		told, errs = append(told, one...), append(errs, err)
	}
	return told, errors.Join(errs...)
}

// withoutLink are the nodes that have no link to id. It fails if one of them knows a
// process of that name that lives: another node has a link to it, or it answers itself.
func withoutLink(answered []Answer, id cluster.NodeID) (targets []Answer, err error) {
	lives := map[string]string{} // what shows it, by the identity of the process
	for _, a := range answered {
		m := admin.MemberIn(*a.Status, id)
		switch {
		case a.Node == id:
			lives[a.Status.Identity] = "it answers at " + a.via
		case m.Link == linkUp:
			lives[m.Identity] = fmt.Sprintf("node %s has a link to it", a.Node)
		default:
			targets = append(targets, a)
		}
	}
	for _, a := range targets {
		if sign := lives[admin.MemberIn(*a.Status, id).Identity]; sign != "" {
			return nil, fmt.Errorf("node %s lives, %s; stop it first. Nothing was done", id, sign)
		}
	}
	return targets, nil
}

// allAnswered fails if a member that runs, as another one's link shows, has not answered.
func allAnswered(all, answered []Answer, id cluster.NodeID) error {
	for _, a := range answered {
		for _, m := range a.Status.Members {
			isMember := func(a Answer) bool { return a.Node == m.Node }
			if m.Node == id || m.Link != linkUp || slices.ContainsFunc(answered, isMember) {
				continue
			}
			why := "it was not found"
			if i := slices.IndexFunc(all, isMember); i >= 0 {
				why = all[i].Error
			}
			return fmt.Errorf("node %s runs and cannot be asked (%s), so nothing was done: name "+
				"its address with --admin, too, or use --here on the machine of each node",
				m.Node, why)
		}
	}
	return nil
}

package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

// Cut cuts the link between two nodes, in both directions.
func (c *Cluster) Cut(ctx context.Context, a, b cluster.NodeID) error {
	if a == b {
		return config.Usage(fmt.Errorf(
			"a node has no link to itself: name two nodes, not %s twice", a))
	}
	answers, err := c.members(ctx, a, b)
	if err != nil {
		return err
	}
	// Both ends drop, so that even frames on their way are lost. One end alone is enough
	// for the link.
	one := c.fault(ctx, answers, a, admin.FaultRequest{Cut: []cluster.NodeID{b}})
	other := c.fault(ctx, answers, b, admin.FaultRequest{Cut: []cluster.NodeID{a}})
	if one != nil && other != nil {
		return errors.Join(one, other)
	}
	return nil
}

// Isolate cuts every link of a node, in both directions.
func (c *Cluster) Isolate(ctx context.Context, id cluster.NodeID) error {
	answers, err := c.members(ctx, id)
	if err != nil {
		return err
	}
	var others []cluster.NodeID
	for _, a := range answers {
		if a.Node != id {
			others = append(others, a.Node)
		}
	}
	return c.fault(ctx, answers, id, admin.FaultRequest{Cut: others})
}

// Heal heals every link.
func (c *Cluster) Heal(ctx context.Context) error {
	answers, err := c.All(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range answers {
		if a.Status == nil {
			errs = append(errs, fmt.Errorf("%s does not answer: what is cut there stays cut (%s)",
				a.Node, a.Error))
			continue
		}
		errs = append(errs, c.fault(ctx, answers, a.Node, admin.FaultRequest{HealAll: true}))
	}
	return errors.Join(errs...)
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
	for _, id := range some {
		if !slices.Contains(members, id) {
			return nil, config.Usage(fmt.Errorf("there is no node %q, but %q", id, members))
		}
	}
	return answers, nil
}

// fault changes the faults of one node.
func (c *Cluster) fault(
	ctx context.Context, answers []Answer, id cluster.NodeID, req admin.FaultRequest,
) error {
	at := answers[slices.IndexFunc(answers, func(a Answer) bool { return a.Node == id })]
	if at.via == "" {
		return fmt.Errorf("%s: its admin address is not known", id)
	}
	client := c.client(at)
	defer client.Close()
	_, err := client.Faults(ctx, req)
	return err
}

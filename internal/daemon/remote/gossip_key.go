package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// leftOver says how things are after a step of a rotation that not all nodes have taken.
var leftOver = map[certs.GossipStep]string{
	certs.GossipAdd: "No node encrypts with the new key, and each goes on with the one before",
	certs.GossipUse: "Each node decrypts with both keys, so they go on",
	certs.GossipRemove: "Each node encrypts with the new key, and some accept the one before, " +
		"too, so they go on",
}

// RotateGossipKey leads all nodes to a key of gossip, or to gossip without encryption if
// it is empty, and the directories of issued certificates in pki with them. Each step is for
// all nodes before the next one begins: then they understand each other all the time. It
// stops if a node that runs, or has a vote, does not take a step. told hears of each that does.
func (c *Cluster) RotateGossipKey(
	ctx context.Context, pki string, key certs.GossipKey, told func(certs.GossipStep, Answer),
) error {
	for _, step := range certs.GossipSteps {
		// Here first: what is copied from there fits the nodes before and after the step.
		err := certs.ChangeIssuedGossipKeys(pki, step, key)
		if err == nil {
			err = c.takeGossipStep(ctx, step, key, told)
		}
		if err != nil {
			return fmt.Errorf("stopped at the step %q: %w\n%s. "+
				"Correct that, and repeat the command", step, err, leftOver[step])
		}
	}
	return nil
}

// takeGossipStep lets all nodes take a step, or none if one of them cannot be asked.
func (c *Cluster) takeGossipStep(
	ctx context.Context, step certs.GossipStep, key certs.GossipKey,
	told func(certs.GossipStep, Answer),
) error {
	answers, err := c.All(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range answers {
		if a.Status == nil && (isVoter(a.Node, answers) || runs(a.Node, answers)) {
			errs = append(errs, fmt.Errorf("node %s cannot be asked: %s", a.Node, a.Error))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\nStart it, or name its address with --admin, too", err)
	}
	req := admin.GossipKeyRequest{Step: step, Key: key.Text()}
	take := func(ctx context.Context, client *admin.Client) (cluster.Status, error) {
		return client.GossipKey(ctx, req)
	}
	for _, a := range answers {
		if a.Status == nil {
			continue // an observer that is down
		}
		done, err := c.tell(ctx, a, take)
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", a.Node, err))
		}
		for _, a := range done {
			told(step, a)
		}
	}
	return errors.Join(errs...)
}

// runs reports whether any node has a link to that one, or sees it in gossip.
func runs(id cluster.NodeID, among []Answer) bool {
	return slices.ContainsFunc(among, func(a Answer) bool {
		if a.Status == nil {
			return false
		}
		m := admin.MemberIn(*a.Status, id)
		return m.Link == linkUp || m.Gossip == "alive"
	})
}

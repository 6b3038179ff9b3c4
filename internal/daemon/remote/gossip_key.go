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
// stops if a node that has a vote, or a link to another, does not take a step. told hears of
// each that does, and of the others, which are skipped: Error says why.
func (c *Cluster) RotateGossipKey(
	ctx context.Context, pki string, key certs.GossipKey, told func(certs.GossipStep, Answer),
) error {
	for _, step := range certs.GossipSteps {
		if err := c.takeGossipStep(ctx, pki, step, key, told); err != nil {
			return fmt.Errorf("stopped at the step %q: %w\n%s. "+
				"Correct that, and repeat the command", step, err, leftOver[step])
		}
	}
	return nil
}

// takeGossipStep lets pki and all nodes take a step, or none if one of these cannot.
func (c *Cluster) takeGossipStep(
	ctx context.Context, pki string, step certs.GossipStep, key certs.GossipKey,
	told func(certs.GossipStep, Answer),
) error {
	takers, skipped, err := c.keyTakers(ctx)
	if err == nil {
		// Here first: what is copied from there fits the nodes before and after the step.
		err = certs.ChangeIssuedGossipKeys(pki, step, key)
	}
	if err != nil {
		return err
	}
	for _, a := range skipped {
		told(step, a)
	}
	req := admin.GossipKeyRequest{Step: step, Key: key.Text()}
	take := func(ctx context.Context, client *admin.Client) (cluster.Status, error) {
		return client.GossipKey(ctx, req)
	}
	var errs []error
	for _, a := range takers {
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

// keyTakers asks which nodes a key may be sent to. It fails if a node without which the
// rotation must not go on is none of them, and returns the others, each with the reason.
func (c *Cluster) keyTakers(ctx context.Context) (takers, skipped []Answer, err error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, a := range answers {
		problem := fmt.Errorf("node %s cannot be asked: %s\nStart it, or name its address with "+
			"--admin, too", a.Node, a.Error)
		if a.Status != nil {
			err := c.client(a).TakesKeys()
			if err == nil {
				takers = append(takers, a)
				continue
			}
			a.Error, problem = err.Error(), fmt.Errorf("node %s: %w", a.Node, err)
		}
		if isVoter(a.Node, answers) || hasLink(a.Node, answers) {
			errs = append(errs, problem)
		} else {
			skipped = append(skipped, Answer{Node: a.Node, Addr: a.Addr, Error: a.Error})
		}
	}
	return takers, skipped, errors.Join(errs...)
}

// hasLink reports whether any node has a link to that one. That gossip tells of it proves
// nothing: who can send gossip can invent members.
func hasLink(id cluster.NodeID, among []Answer) bool {
	return slices.ContainsFunc(among, func(a Answer) bool {
		return a.Status != nil && admin.MemberIn(*a.Status, id).Link == linkUp
	})
}

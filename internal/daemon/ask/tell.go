package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/config"
)

// tell tells one node something, and returns its answer.
func (c *Cluster) tell(ctx context.Context, a Answer, req admin.Request) ([]Answer, error) {
	if a.via == "" {
		return nil, fmt.Errorf("%s: its admin address is not known", a.Node)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	st, err := c.client(a).Tell(ctx, req)
	if err != nil {
		return nil, err
	}
	switch req.(type) {
	case admin.FaultRequest:
		return []Answer{{Node: a.Node, Addr: a.Addr, Faults: st.Faults}}, nil
	case admin.OpenRequest, admin.CloseRequest:
		return []Answer{{Node: a.Node, Addr: a.Addr, Election: &st.Groups[0]}}, nil
	}
	return []Answer{{Node: a.Node, Addr: a.Addr, Status: &st}}, nil
}

// tellEach tells several nodes the same, and returns the answers of those that did it. The error
// joins those of the others.
func (c *Cluster) tellEach(ctx context.Context, nodes []Answer, req admin.Request) (
	told []Answer, err error,
) {
	var errs []error
	for _, a := range nodes {
		done, err := c.tell(ctx, a, req)
		told, errs = append(told, done...), append(errs, err)
	}
	return told, errors.Join(errs...)
}

// TellAll tells every node that answers the same, such as a pause or its end, and returns the
// answers of those that did it. The error names the voters that were not told. Observers may
// miss it: they never stand.
func (c *Cluster) TellAll(ctx context.Context, req admin.Request) (told []Answer, err error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, a := range answers {
		why := errors.New(a.Error)
		if a.answered() {
			var done []Answer
			done, why = c.tell(ctx, a, req)
			told = append(told, done...)
		}
		if why != nil && isVoter(a.Node, answers) {
			errs = append(errs, fmt.Errorf("voter %s was not told: %w", a.Node, why))
		}
	}
	return told, errors.Join(errs...)
}

// isVoter reports whether any node counts another one as a voter.
func isVoter(id cluster.NodeID, among []Answer) bool {
	return slices.ContainsFunc(among, func(a Answer) bool {
		return a.answered() && slices.Contains(a.election().Voters, id)
	})
}

// Set changes settings of a node until it restarts, and returns its answer.
func (c *Cluster) Set(ctx context.Context, id cluster.NodeID, req admin.SettingsRequest) (
	[]Answer, error,
) {
	answers, err := c.members(ctx, id)
	if err != nil {
		return nil, err
	}
	a := find(answers, id)
	if a.silent() {
		return nil, fmt.Errorf("%s does not answer: %s", id, a.Error)
	}
	return c.tell(ctx, *a, req)
}

// Cut cuts the link between two nodes, in both directions, and returns their answers.
func (c *Cluster) Cut(ctx context.Context, a, b cluster.NodeID) ([]Answer, error) {
	if a == b {
		return nil, config.Usage(fmt.Errorf(
			"a node has no link to itself: name two nodes, not %s twice", a))
	}
	answers, err := c.members(ctx, a, b)
	if err != nil {
		return nil, err
	}
	// One end is enough to cut the link. With both, even frames under way are lost.
	told, one := c.tell(ctx, *find(answers, a), admin.FaultRequest{Cut: []cluster.NodeID{b}})
	also, other := c.tell(ctx, *find(answers, b), admin.FaultRequest{Cut: []cluster.NodeID{a}})
	if one != nil && other != nil {
		return nil, errors.Join(one, other)
	}
	return append(told, also...), nil
}

// Isolate cuts every link of a node, in both directions, and returns its answer.
func (c *Cluster) Isolate(ctx context.Context, id cluster.NodeID) ([]Answer, error) {
	answers, err := c.members(ctx, id)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(nodesOf(answers), func(o cluster.NodeID) bool { return o == id })
	return c.tell(ctx, *find(answers, id), admin.FaultRequest{Cut: others})
}

// Heal heals every link, and returns the answers of the nodes.
func (c *Cluster) Heal(ctx context.Context) (told []Answer, err error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, a := range answers {
		if a.silent() {
			errs = append(errs, fmt.Errorf("%s does not answer: what is cut there stays cut (%s)",
				a.Node, a.Error))
		}
	}
	told, err = c.tellEach(ctx, answering(answers), admin.FaultRequest{HealAll: true})
	return told, errors.Join(append(errs, err)...)
}

// members are the answers of all nodes. It is an error if some node is none of them.
func (c *Cluster) members(ctx context.Context, some ...cluster.NodeID) ([]Answer, error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range some {
		if find(answers, id) == nil {
			return nil, config.Usage(fmt.Errorf("there is no node %q, but %s", id,
				words.List(slices.Sorted(slices.Values(nodesOf(answers))))))
		}
	}
	return answers, nil
}

// ErrNothingToForget means that a process that runs has the name of the node: the old one, or
// already the one that replaces it.
var ErrNothingToForget = errors.New("there is nothing to forget")

// Forget lets the members accept the next process that has a node's name, and returns the answers
// of those that will. It does nothing if a member shows that the present process lives, or if a
// member that runs cannot be asked. With here, only the node at the given address is told, and
// the others may be silent.
func (c *Cluster) Forget(ctx context.Context, id cluster.NodeID, here bool) ([]Answer, error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	answered := answering(answers)
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
	return c.tellEach(ctx, targets, admin.ForgetRequest{Node: id})
}

// withoutLink are the nodes that have no link to id. It is an error if one of them knows a process
// of that name, if the process is known to live: a node has a link to it, or it answers.
func withoutLink(answered []Answer, id cluster.NodeID) (targets []Answer, err error) {
	lives := map[string]string{} // what shows it, by the identity of the process
	for _, a := range answered {
		switch {
		case a.Node == id:
			lives[a.Status.Identity] = "it answers at " + a.via
		case a.hasLink(id):
			lives[a.member(id).Identity] = fmt.Sprintf("node %s has a link to it", a.Node)
		default:
			targets = append(targets, a)
		}
	}
	for _, a := range targets {
		if sign := lives[a.member(id).Identity]; sign != "" {
			return nil, fmt.Errorf("node %s lives, %s; stop it first. Nothing was done", id, sign)
		}
	}
	return targets, nil
}

// allAnswered returns an error if a member has not answered although another has a link to it.
func allAnswered(all, answered []Answer, id cluster.NodeID) error {
	for _, a := range answered {
		for _, m := range a.Status.Members {
			if m.Node == id || m.Link != linkUp || find(answered, m.Node) != nil {
				continue
			}
			why := "it was not found"
			if silent := find(all, m.Node); silent != nil {
				why = silent.Error
			}
			return fmt.Errorf("node %s runs and cannot be asked (%s), so nothing was done: name "+
				"its address with --admin, too, or use --here on the machine of each node",
				m.Node, why)
		}
	}
	return nil
}

// leftOver says how things are after a step of a rotation that not all nodes have taken.
var leftOver = map[certs.GossipStep]string{
	certs.GossipAdd: "No node encrypts with the new key, and each goes on with the one before",
	certs.GossipUse: "Each node decrypts with both keys, so they go on",
	certs.GossipRemove: "Each node encrypts with the new key, and some accept the one before, " +
		"too, so they go on",
}

// RotateGossipKey changes the key of gossip on all nodes, and in the directories of issued
// certificates in pki. An empty key ends the encryption of gossip. All nodes take a step before
// the next one begins, so that they understand each other all the time. It stops if a node that
// has a vote, or a link to another node, does not take a step. It calls told for each node that
// takes one, and for those that it skips; Error says why.
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

// takeGossipStep changes pki and then all nodes, or nothing if a node cannot be asked.
func (c *Cluster) takeGossipStep(
	ctx context.Context, pki string, step certs.GossipStep, key certs.GossipKey,
	told func(certs.GossipStep, Answer),
) error {
	takers, skipped, err := c.keyTakers(ctx)
	if err == nil {
		// The directories first: what is copied from them fits nodes before and after the step.
		err = certs.ChangeIssuedGossipKeys(pki, step, key)
	}
	if err != nil {
		return err
	}
	for _, a := range skipped {
		told(step, a)
	}
	var errs []error
	for _, a := range takers {
		done, err := c.tell(ctx, a, admin.GossipKeyRequest{Step: step, Key: key.Text()})
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", a.Node, err))
		}
		for _, a := range done {
			told(step, a)
		}
	}
	return errors.Join(errs...)
}

// keyTakers returns the nodes to which a key may be sent, and those that are skipped, with the
// reason. It is an error if a node that must not be skipped is none of the takers.
func (c *Cluster) keyTakers(ctx context.Context) (takers, skipped []Answer, err error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, a := range answers {
		problem := fmt.Errorf("node %s cannot be asked: %s\nStart it, or name its address with "+
			"--admin, too", a.Node, a.Error)
		if a.answered() {
			err := c.client(a).TakesKeys()
			if err == nil {
				takers = append(takers, a)
				continue
			}
			a.Error, problem = err.Error(), fmt.Errorf("node %s: %w", a.Node, err)
		}
		// That gossip knows a member proves nothing: whoever can send gossip can invent members.
		linked := func(b Answer) bool { return b.answered() && b.hasLink(a.Node) }
		if isVoter(a.Node, answers) || slices.ContainsFunc(answers, linked) {
			errs = append(errs, problem)
		} else {
			skipped = append(skipped, Answer{Node: a.Node, Addr: a.Addr, Error: a.Error})
		}
	}
	return takers, skipped, errors.Join(errs...)
}

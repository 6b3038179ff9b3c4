package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/netmesh"
)

// VoterStep tells how far a change of voters is.
type VoterStep struct {
	Group string `json:"group"` // the election
	Text  string `json:"text"`  // what is done now, or what would be done
	Done  bool   `json:"done"`  // the change of this election is complete
}

// VoterOption is an option of AddVoter, RemoveVoter and ReplaceVoter.
type VoterOption func(*voterChange)

// voterChange is a change of voters as a caller wants it.
type voterChange struct {
	add, remove NodeID
	dryRun      bool
	progress    func(VoterStep)
}

// WithProgress has f called with each step of a change, on the goroutine of the caller.
func WithProgress(f func(VoterStep)) VoterOption {
	return func(c *voterChange) { c.progress = f }
}

// DryRun changes nothing: the steps say what would happen, and the error what is wrong.
func DryRun() VoterOption { return func(c *voterChange) { c.dryRun = true } }

// AddVoter makes a connected member a voter of every election that is open on this node, one after
// the other. It can be called on any node: the leaders are asked. It is idempotent: where the node
// is a voter already, nothing happens. It returns when the last change is committed; repeat it if
// it fails. The error wraps ErrRefused and says what is wrong, or is the cause of ctx, and then the
// change may still happen.
//
// Update the configuration of every node afterwards: it names the voters of elections that are
// opened later.
func (n *Node) AddVoter(ctx context.Context, id NodeID, o ...VoterOption) error {
	return n.changeVoters(ctx, voterChange{add: id}, o)
}

// RemoveVoter takes a voter out of every election that is open on this node, as AddVoter adds one.
// A leader that is to be removed hands over first.
func (n *Node) RemoveVoter(ctx context.Context, id NodeID, o ...VoterOption) error {
	return n.changeVoters(ctx, voterChange{remove: id}, o)
}

// ReplaceVoter replaces a voter by another member, in two steps, as RemoveVoter and AddVoter. A
// voter that is connected to this node is removed last, one that is not is removed first. Both may
// have the same name: then the data directory is replaced.
func (n *Node) ReplaceVoter(ctx context.Context, old, by NodeID, o ...VoterOption) error {
	return n.changeVoters(ctx, voterChange{add: by, remove: old}, o)
}

// changeVoters carries out a change in one election after the other.
func (n *Node) changeVoters(ctx context.Context, c voterChange, o []VoterOption) error {
	for _, option := range o {
		option(&c)
	}
	elections, _ := n.loop.Snapshots()
	for _, e := range elections {
		if err := n.changeElection(ctx, e.Election, &c); err != nil {
			return fmt.Errorf("change the voters of election %q: %w", e.Name, err)
		}
	}
	return nil
}

// changeElection carries out a change in one election, step by step.
func (n *Node) changeElection(ctx context.Context, e *loop.Election, c *voterChange) error {
	last := ""
	tell := func(text string, done bool) {
		if c.progress != nil && (text != last || done) {
			c.progress(VoterStep{Group: e.Name, Text: text, Done: done})
		}
		last = text
	}
	steps := n.steps(c)
	for i, step := range steps {
		if c.dryRun {
			step.DryRun, step.Assumed = true, steps[:i]
		}
		text, err := n.loop.ChangeVoters(ctx, e, step, func(why error) { tell(why.Error(), false) })
		if err != nil {
			return err
		}
		tell(text, i == len(steps)-1 && !c.dryRun)
	}
	return nil
}

// steps are the parts of a change, in their order: a dead voter is removed first, so that as few as
// possible must be up.
func (n *Node) steps(c *voterChange) (steps []loop.VoterChange) {
	add, remove := loop.VoterChange{Add: c.add}, loop.VoterChange{Remove: c.remove}
	lives := c.remove == n.cfg.Node || slices.ContainsFunc(n.mesh.Links(),
		func(l netmesh.LinkStatus) bool { return l.Up && l.Peer.Node == c.remove })
	switch {
	case c.remove == "":
		return []loop.VoterChange{add}
	case c.add == "":
		return []loop.VoterChange{remove}
	case lives && c.add != c.remove:
		return []loop.VoterChange{add, remove}
	}
	return []loop.VoterChange{remove, add}
}

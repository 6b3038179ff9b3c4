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

// voterChange is how a caller wants the voters to be changed.
type voterChange struct {
	dryRun   bool
	progress func(VoterStep)
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
	return n.changeVoters(ctx, o, loop.VoterChange{Add: id})
}

// RemoveVoter takes a voter out of every election that is open on this node, as AddVoter adds one.
// A leader that is to be removed hands over first.
func (n *Node) RemoveVoter(ctx context.Context, id NodeID, o ...VoterOption) error {
	return n.changeVoters(ctx, o, loop.VoterChange{Remove: id})
}

// ReplaceVoter replaces a voter by another member, in two steps, as RemoveVoter and AddVoter. A
// voter that is connected to this node is removed last, one that is not is removed first. Both may
// have the same name: then the data directory is replaced.
func (n *Node) ReplaceVoter(ctx context.Context, old, by NodeID, o ...VoterOption) error {
	add, remove := loop.VoterChange{Add: by}, loop.VoterChange{Remove: old}
	lives := old == n.cfg.Node || slices.ContainsFunc(n.mesh.Links(),
		func(l netmesh.LinkStatus) bool { return l.Up && l.Peer.Node == old })
	if lives && old != by {
		return n.changeVoters(ctx, o, add, remove)
	}
	return n.changeVoters(ctx, o, remove, add) // so that as few as possible must be up
}

// changeVoters carries out the parts of a change in one election after the other.
func (n *Node) changeVoters(ctx context.Context, o []VoterOption, parts ...loop.VoterChange) error {
	var c voterChange
	for _, option := range o {
		option(&c)
	}
	elections, _ := n.loop.Snapshots()
	for _, e := range elections {
		for i, part := range parts {
			if c.dryRun {
				part.DryRun, part.Assumed = true, parts[:i]
			}
			text, err := n.loop.ChangeVoters(ctx, e.Election, part, c.teller(e.Name))
			if err != nil {
				return fmt.Errorf("change the voters of election %q: %w", e.Name, err)
			}
			if c.progress != nil {
				c.progress(VoterStep{e.Name, text, i == len(parts)-1 && !c.dryRun})
			}
		}
	}
	return nil
}

// teller returns a function that tells the caller what is waited for in an election, once.
func (c *voterChange) teller(group string) func(error) {
	last := ""
	return func(why error) {
		if text := why.Error(); c.progress != nil && text != last {
			c.progress(VoterStep{Group: group, Text: text})
			last = text
		}
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/netmesh"
)

// VoterStep tells how far a change of voters is.
type VoterStep struct {
	Group string `json:"group"` // the election
	Text  string `json:"text"`  // what is done now, or what would be done
	Done  bool   `json:"done"`  // the change of this election is complete
}

// VoterOptions are those of AddVoter, RemoveVoter and ReplaceVoter.
type VoterOptions struct {
	// DryRun changes nothing: the steps say what would happen, and the error what is wrong.
	DryRun bool
	// Progress, if set, is called with each step, one after the other but on any goroutine. The
	// steps of an election are in order.
	Progress func(VoterStep)
}

// AddVoter makes a connected member a voter of every election that is open on this node, a few at a
// time. It can be called on any node: the leaders are asked. It is idempotent: where the node
// is a voter already, nothing happens. It returns when the last change is committed; repeat it if
// it fails. The error wraps ErrRefused and says what is wrong, or is the cause of ctx, and then the
// change may still happen.
//
// Update the configuration of every node afterwards: it names the voters of elections that are
// opened later.
func (n *Node) AddVoter(ctx context.Context, id NodeID, o VoterOptions) error {
	return n.changeVoters(ctx, o, loop.VoterChange{Add: id})
}

// RemoveVoter takes a voter out of every election that is open on this node, as AddVoter adds one.
// A leader that is to be removed hands over first. It is refused if the node is a voter of none.
func (n *Node) RemoveVoter(ctx context.Context, id NodeID, o VoterOptions) error {
	return n.changeVoters(ctx, o, loop.VoterChange{Remove: id})
}

// ReplaceVoter replaces a voter by another member, in two steps, as RemoveVoter and AddVoter. A
// voter that is connected to this node is removed last, one that is not is removed first. Both may
// have the same name: then the data directory is replaced. It is refused if the new one is a voter
// already, or the old one is not a voter. If a replacement ended half-way, do the other step alone.
func (n *Node) ReplaceVoter(ctx context.Context, old, by NodeID, o VoterOptions) error {
	add, remove := loop.VoterChange{Add: by}, loop.VoterChange{Remove: old}
	lives := old == n.cfg.Node || slices.ContainsFunc(n.mesh.Links(),
		func(l netmesh.LinkStatus) bool { return l.Up && l.Peer.Node == old })
	if lives && old != by {
		return n.changeVoters(ctx, o, add, remove)
	}
	return n.changeVoters(ctx, o, remove, add) // so that as few as possible must be up
}

// changesAtOnce is in how many elections voters change at a time: a leader takes that many calls of
// one node.
const changesAtOnce = 8

// changeVoters carries out the parts of a change in all elections. After a failure it begins no
// more, and finishes those that it has begun.
func (n *Node) changeVoters(ctx context.Context, o VoterOptions, parts ...loop.VoterChange) error {
	var mu sync.Mutex
	progress, missing := o.Progress, 0 // where it is no voter: it may have been removed there before
	o.Progress = func(step VoterStep) {
		mu.Lock()
		defer mu.Unlock()
		if progress != nil {
			progress(step)
		}
	}
	elections := n.selected(Selection{})
	var all errgroup.Group
	if all.SetLimit(changesAtOnce); o.DryRun {
		all.SetLimit(1) // which is sorted by election
	}
	var failed atomic.Bool
	for _, e := range elections {
		all.Go(func() error {
			if failed.Load() {
				return nil
			}
			err := n.changeVotersOf(ctx, e, &o, parts)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, loop.ErrNoVoter) {
				if missing++; missing < len(elections) {
					return nil
				}
			}
			if err != nil {
				failed.Store(true)
				err = fmt.Errorf("change the voters of election %q: %w", e.Name, err)
			}
			return err
		})
	}
	return all.Wait()
}

// changeVotersOf carries out the parts of a change in one election, if all of them are possible.
func (n *Node) changeVotersOf(
	ctx context.Context, e *loop.Election, o *VoterOptions, parts []loop.VoterChange,
) error {
	steps, err := n.loop.PlanVoters(ctx, e, o.teller(e.Name), parts...)
	if o.DryRun && err == nil {
		for _, text := range steps {
			o.Progress(VoterStep{Group: e.Name, Text: text})
		}
		return nil
	}
	for i := 0; i < len(parts) && err == nil; i++ {
		var text string
		text, err = n.loop.ChangeVoters(ctx, e, parts[i], o.teller(e.Name))
		if err == nil {
			o.Progress(VoterStep{e.Name, text, i == len(parts)-1})
		}
	}
	return err
}

// teller returns a function that tells the caller what is waited for in an election, once.
func (o *VoterOptions) teller(group string) func(error) {
	last := ""
	return func(why error) {
		if text := why.Error(); text != last {
			o.Progress(VoterStep{Group: group, Text: text})
			last = text
		}
	}
}

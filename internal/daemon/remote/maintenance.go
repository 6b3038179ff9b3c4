package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// Pause pauses elections on every node that answers, and returns those that do so, each with
// its status then. The error names the voters that were not told.
func (c *Cluster) Pause(ctx context.Context, d time.Duration) ([]Answer, error) {
	return c.tellAll(ctx, func(ctx context.Context, client *admin.Client) (cluster.Status, error) {
		return client.Pause(ctx, admin.PauseRequest{For: d.String()})
	})
}

// Resume ends the pause on every node that answers, as Pause begins it.
func (c *Cluster) Resume(ctx context.Context) ([]Answer, error) {
	return c.tellAll(ctx, func(ctx context.Context, client *admin.Client) (cluster.Status, error) {
		return client.Resume(ctx)
	})
}

// tellAll tells every node the same. That an observer was not told is no error: it does not
// stand anyway.
func (c *Cluster) tellAll(
	ctx context.Context, tell func(context.Context, *admin.Client) (cluster.Status, error),
) (told []Answer, err error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, a := range answers {
		why := errors.New(a.Error)
		if a.Status != nil {
			var done []Answer
			done, why = c.tell(ctx, a, tell)
			told = append(told, done...)
		}
		if why != nil && isVoter(a.Node, answers) {
			errs = append(errs, fmt.Errorf("voter %s was not told: %w", a.Node, why))
		}
	}
	return told, errors.Join(errs...)
}

// tell tells one node that has answered, and returns it with its status then.
func (c *Cluster) tell(
	ctx context.Context, a Answer,
	tell func(context.Context, *admin.Client) (cluster.Status, error),
) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client := c.client(a)
	defer client.Close()
	st, err := tell(ctx, client)
	if err != nil {
		return nil, err
	}
	return []Answer{{Node: a.Node, Addr: a.Addr, Status: &st}}, nil
}

// isVoter reports whether any node counts that one as a voter.
func isVoter(id cluster.NodeID, among []Answer) bool {
	return slices.ContainsFunc(among, func(a Answer) bool {
		return a.Status != nil && slices.Contains(a.Status.Groups[0].Voters, id)
	})
}

// Set changes settings of a node until it restarts, and returns it with its status then.
func (c *Cluster) Set(ctx context.Context, id cluster.NodeID, req admin.SettingsRequest) (
	[]Answer, error,
) {
	answers, err := c.members(ctx, id)
	if err != nil {
		return nil, err
	}
	a := answers[slices.IndexFunc(answers, func(a Answer) bool { return a.Node == id })]
	if a.Status == nil {
		return nil, fmt.Errorf("%s does not answer: %s", id, a.Error)
	}
	return c.tell(ctx, a, func(ctx context.Context, client *admin.Client) (cluster.Status, error) {
		return client.Set(ctx, req)
	})
}

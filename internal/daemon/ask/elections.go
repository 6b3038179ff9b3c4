package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// Elections returns up to limit elections of the first node that answers, and that node's name.
// Their names begin with prefix, and come after another name.
func (c *Cluster) Elections(ctx context.Context, prefix, after string, limit int) (
	node cluster.NodeID, found admin.Elections, err error,
) {
	var first Answer
	var silent []Answer
	err = c.walk(ctx, false, func(a Answer) bool {
		if first = a; a.silent() {
			silent = append(silent, a)
		}
		return a.answered()
	})
	if err == nil && first.silent() {
		err = noAnswerOf(silent)
	}
	found = admin.Elections{Elections: []cluster.GroupStatus{}, Next: after}
	for err == nil && len(found.Elections) < limit {
		var page admin.Elections
		size := min(limit-len(found.Elections), admin.MaxElections)
		page, err = c.client(first).Elections(ctx, prefix, found.Next, size)
		found.Elections, found.Next = append(found.Elections, page.Elections...), page.Next
		if page.Next == "" {
			break
		}
	}
	return first.Node, found, err
}

// OpenElection opens an election on every node that answers, and returns the answers of those that
// did it. The error names the voters that did not.
func (c *Cluster) OpenElection(ctx context.Context, name string) ([]Answer, error) {
	return c.onEach(ctx, name, (*admin.Client).OpenElection)
}

// CloseElection closes an election on every node that answers, the leader last, which then does not
// hand over. What it returns is as for OpenElection.
func (c *Cluster) CloseElection(ctx context.Context, name string) ([]Answer, error) {
	return c.onEach(ctx, name, (*admin.Client).CloseElection)
}

func (c *Cluster) onEach(ctx context.Context, name string,
	do func(*admin.Client, context.Context, string) (cluster.GroupStatus, error),
) (done []Answer, err error) {
	answers, err := c.All(ctx)
	if err != nil {
		return nil, err
	}
	leads := func(a Answer) int {
		if a.answered() && admin.GroupIn(*a.Status, name).Leading {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(answers, func(a, b Answer) int {
		return cmp.Or(leads(a)-leads(b), byName(a, b))
	})
	var errs []error
	for _, a := range answers {
		why := errors.New(a.Error)
		if a.answered() {
			var g cluster.GroupStatus
			bounded, cancel := context.WithTimeout(ctx, askTimeout)
			g, why = do(c.client(a), bounded, name)
			cancel()
			if why == nil {
				done = append(done, Answer{Node: a.Node, Addr: a.Addr, Election: &g})
			}
		}
		if why != nil && isVoter(a.Node, answers) {
			errs = append(errs, fmt.Errorf("voter %s: %w", a.Node, why))
		}
	}
	return done, errors.Join(errs...)
}

// ElectionsTable shows elections as a node sees them, a line for each.
func ElectionsTable(all []cluster.GroupStatus) []string {
	rows := []string{"ELECTION\tLEADER\tTERM\tROLE"}
	for _, g := range all {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t%s", g.Group,
			cmp.Or(string(g.Leader), "-"), g.Term, g.Role))
	}
	return console.Columns(rows)
}

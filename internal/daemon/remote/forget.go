package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

// Forget lets the members take in the next process that has a node's name. It does nothing
// if a member shows that the present process lives, or if one that runs cannot be asked.
// With here only the node at the given address is told, and the others may be silent.
func (c *Cluster) Forget(ctx context.Context, out io.Writer, id cluster.NodeID, here bool) error {
	answers, err := c.All(ctx)
	if err != nil {
		return err
	}
	silent := func(a Answer) bool { return a.Status == nil }
	answered := slices.DeleteFunc(slices.Clone(answers), silent)
	targets, err := withoutLink(answered, id)
	if err == nil && !here {
		err = allAnswered(answers, answered, id)
	}
	if err != nil {
		return err
	}
	if here {
		elsewhere := func(a Answer) bool { return a.Node != answered[0].Node }
		targets = slices.DeleteFunc(targets, elsewhere)
	}
	if len(targets) == 0 {
		return fmt.Errorf("there is nothing to forget: every node that was asked has a link "+
			"to node %s", id)
	}
	var errs []error
	for _, a := range targets {
		client := c.client(a)
		_, err := client.Forget(ctx, admin.ForgetRequest{Node: id})
		client.Close()
		if err == nil {
			fmt.Fprintf(out, "%s takes in the next process that is called %s\n", a.Node, id)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// withoutLink are the nodes that have no link to id. It fails if one of them knows a
// process of that name that lives: another node has a link to it, or it answers itself.
func withoutLink(answered []Answer, id cluster.NodeID) (targets []Answer, err error) {
	lives := map[string]string{} // what shows it, by the identity of the process
	for _, a := range answered {
		m := memberOf(*a.Status, id)
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
		if sign := lives[memberOf(*a.Status, id).Identity]; sign != "" {
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

// memberOf is another member in a node's status, or the zero value.
func memberOf(st cluster.Status, id cluster.NodeID) cluster.MemberStatus {
	for _, m := range st.Members {
		if m.Node == id {
			return m
		}
	}
	return cluster.MemberStatus{}
}

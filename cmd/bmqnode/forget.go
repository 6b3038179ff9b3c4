package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

func forgetCommand() *cobra.Command {
	var r remote
	var here bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "forget NODE",
		Short: "Let a new machine take the name of one that is gone for good",
		Long: "Let the members take in the next process of a node's name, whatever its data directory: for\n" +
			"a machine that was lost with its disk and whose end the others could not see. All members\n" +
			"are asked first, and nothing is done if one of them has a link to that process.\n" +
			"Make sure that the old process is gone: two processes of one name can vote twice.",
		Example: "  bmqnode forget n3",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return r.forget(ctx, cmd.OutOrStdout(), cluster.NodeID(args[0]), here)
		},
	}
	r.register(cmd)
	cmd.Flags().BoolVar(&here, "here", false, "only at the node that answers at --admin, where the others cannot be asked from this machine")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "longest wait for all answers")
	return cmd
}

func (r *remote) forget(ctx context.Context, out io.Writer, id cluster.NodeID, here bool) error {
	answers, err := r.all(ctx)
	if err != nil {
		return err
	}
	answered := slices.DeleteFunc(slices.Clone(answers), func(a answerOf) bool { return a.Status == nil })
	targets, err := whereUnlinked(answered, id)
	if err == nil && !here {
		err = allAnswered(answers, answered, id)
	}
	if err != nil {
		return err
	}
	if here {
		targets = slices.DeleteFunc(targets, func(a answerOf) bool { return a.Node != answered[0].Node })
	}
	if len(targets) == 0 {
		return fmt.Errorf("there is nothing to forget: whoever was asked has a link to node %s", id)
	}
	var errs []error
	for _, a := range targets {
		client := r.client(a)
		_, err := client.Forget(ctx, admin.ForgetRequest{Node: id})
		client.Close()
		if err == nil {
			fmt.Fprintf(out, "%s takes in the next process that is called %s\n", a.Node, id)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// whereUnlinked are those of the nodes that answered which have no link to id. It
// fails if one of them knows a process of that name which lives: another node has a
// link to it, or it answers itself.
func whereUnlinked(answered []answerOf, id cluster.NodeID) (targets []answerOf, err error) {
	lives := map[string]string{} // identities of processes of that name, and what shows them
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
func allAnswered(all, answered []answerOf, id cluster.NodeID) error {
	for _, a := range answered {
		for _, m := range a.Status.Members {
			said := func(a answerOf) bool { return a.Node == m.Node }
			if m.Node == id || m.Link != linkUp || slices.ContainsFunc(answered, said) {
				continue
			}
			why := "it was not found"
			if i := slices.IndexFunc(all, said); i >= 0 {
				why = all[i].Error
			}
			return fmt.Errorf("node %s runs and cannot be asked (%s), so nothing was done: "+
				"name its address with --admin, too, or use --here on the machine of each node", m.Node, why)
		}
	}
	return nil
}

// linkUp is MemberStatus.Link of a link that stands.
const linkUp = "up"

// memberOf is another member in a node's status, or the zero value.
func memberOf(st cluster.Status, id cluster.NodeID) (found cluster.MemberStatus) {
	for _, m := range st.Members {
		if m.Node == id {
			found = m
		}
	}
	return found
}

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
	"github.com/bmqelect/bmqelect/internal/admin"
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
			"are asked first, and nothing is done if one of them has a link to that node.\n" +
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
	if err := goneForAll(answered, id); err != nil {
		return err
	}
	if here {
		answered = answered[:1]
	} else if err := allAnswered(answers, answered, id); err != nil {
		return err
	}
	var errs []error
	for _, a := range answered {
		if a.Node == id {
			continue // the new process
		}
		client := r.client(a.via)
		_, err := client.Forget(ctx, admin.ForgetRequest{Node: id})
		client.Close()
		if err == nil {
			fmt.Fprintf(out, "%s takes in the next process that is called %s\n", a.Node, id)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// goneForAll fails if one of the nodes that answered has a link to id, or knows the
// very process of that name which answered, too.
func goneForAll(answered []answerOf, id cluster.NodeID) error {
	runs := map[string]string{} // identity of a process of that name, and where it answers
	for _, a := range answered {
		if a.Node == id {
			runs[a.Status.Identity] = a.via
		}
	}
	for _, a := range answered {
		m := memberOf(*a.Status, id)
		if m.Link == linkUp {
			return fmt.Errorf("node %s lives: node %s has a link to it; nothing was done", id, a.Node)
		}
		if at := runs[m.Identity]; at != "" {
			return fmt.Errorf("node %s lives: the process that node %s knows answers at %s; nothing was done", id, a.Node, at)
		}
	}
	return nil
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

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
)

func faultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Cut and heal links between nodes that run with --faults",
		Args:  usageArgs(noSuchCommand),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(cutCommand(), isolateCommand(), healCommand())
	return cmd
}

func cutCommand() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:     "cut NODE NODE",
		Short:   "Cut the link between two nodes, in both directions",
		Example: "  bmqnode fault cut n1 n2",
		Args:    usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, b := cluster.NodeID(args[0]), cluster.NodeID(args[1])
			if a == b {
				return usageError{fmt.Errorf("a node has no link to itself: name two nodes, not %s twice", a)}
			}
			answers, err := r.all(cmd.Context())
			if err != nil {
				return err
			}
			if err := known(answers, a, b); err != nil {
				return usageError{err}
			}
			// Both ends drop, so that even frames on their way are lost. One alone
			// is enough for the link.
			one := r.fault(cmd.Context(), answers, a, admin.FaultRequest{Cut: []cluster.NodeID{b}})
			other := r.fault(cmd.Context(), answers, b, admin.FaultRequest{Cut: []cluster.NodeID{a}})
			if one != nil && other != nil {
				return errors.Join(one, other)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s and %s do not hear each other\n", a, b)
			return nil
		},
	}
	r.register(cmd)
	return cmd
}

func isolateCommand() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:     "isolate NODE",
		Short:   "Cut every link of a node, in both directions",
		Example: "  bmqnode fault isolate n3",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := cluster.NodeID(args[0])
			answers, err := r.all(cmd.Context())
			if err != nil {
				return err
			}
			if err := known(answers, id); err != nil {
				return usageError{err}
			}
			var others []cluster.NodeID
			for _, a := range answers {
				if a.Node != id {
					others = append(others, a.Node)
				}
			}
			if err := r.fault(cmd.Context(), answers, id, admin.FaultRequest{Cut: others}); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s hears nobody and nobody hears it\n", id)
			return nil
		},
	}
	r.register(cmd)
	return cmd
}

func healCommand() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "heal",
		Short: "Heal every link",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answers, err := r.all(cmd.Context())
			if err != nil {
				return err
			}
			var errs []error
			for _, a := range answers {
				if a.Status == nil {
					errs = append(errs, fmt.Errorf("%s does not answer: what is cut there stays cut (%s)", a.Node, a.Error))
					continue
				}
				errs = append(errs, r.fault(cmd.Context(), answers, a.Node, admin.FaultRequest{HealAll: true}))
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "every link is healed")
			return nil
		},
	}
	r.register(cmd)
	return cmd
}

// known checks that the nodes are members.
func known(answers []answerOf, ids ...cluster.NodeID) error {
	var members []cluster.NodeID
	for _, a := range answers {
		members = append(members, a.Node)
	}
	for _, id := range ids {
		if !slices.Contains(members, id) {
			return fmt.Errorf("there is no node %q, but %q", id, members)
		}
	}
	return nil
}

// fault changes the faults of one node.
func (r *remote) fault(ctx context.Context, answers []answerOf, id cluster.NodeID, req admin.FaultRequest) error {
	i := slices.IndexFunc(answers, func(a answerOf) bool { return a.Node == id })
	if answers[i].via == "" {
		return fmt.Errorf("%s: its admin address is not known", id)
	}
	client := r.client(answers[i])
	defer client.Close()
	_, err := client.Faults(ctx, req)
	return err
}

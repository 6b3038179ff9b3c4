package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// watchRetry is how long after the loss of a node it is looked for again.
const watchRetry = time.Second

func watchCommand() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print the transitions of every node as they happen, until Ctrl-C",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.watchAll(cmd.Context(), console.New(cmd.OutOrStdout()))
		},
	}
	r.register(cmd)
	return cmd
}

// watchAll follows every node as soon as it is known, whether it answers or not.
func (r *remote) watchAll(ctx context.Context, out *console.Printer) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var silent []answerOf
	follow := func(a answerOf) {
		if a.via != "" {
			wg.Go(func() { r.watch(ctx, a, out) })
		}
	}
	followed := map[cluster.NodeID]bool{}
	err := r.walk(ctx, false, func(a answerOf) bool {
		if a.Status == nil {
			silent = append(silent, a)
			return false
		}
		if len(followed) == 0 {
			out.Say("watching; Ctrl-C ends it")
		}
		for _, one := range append([]answerOf{a}, membersOf(*a.Status)...) {
			if !followed[one.Node] {
				followed[one.Node] = true
				follow(one)
			}
		}
		return false
	})
	if err == nil && len(followed) == 0 {
		err = nobodyAnswers("name one that runs with --admin", silent)
	}
	return err
}

// watch follows one node through its restarts.
func (r *remote) watch(ctx context.Context, a answerOf, out *console.Printer) {
	client := r.client(a)
	defer client.Close()
	lost := false
	stream := admin.Stream{Event: out.Transition}
	stream.Ready = func() {
		if lost {
			out.Note(time.Now(), string(a.Node), "answers again")
		}
		lost = false
	}
	stream.Reset = func(gone admin.Reset) {
		out.Note(time.Now(), string(a.Node), "%s; now %s", gone.Reason, nowAs(gone.Status))
	}
	for ctx.Err() == nil {
		err := client.Follow(ctx, &stream)
		if ctx.Err() == nil && !lost {
			lost = true
			out.Note(time.Now(), string(a.Node), "%s", console.Alert("does not answer")+reasonOf(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
}

// nowAs says in a line what a node is in each of its elections.
func nowAs(st cluster.Status) string {
	var all []string
	for _, g := range st.Groups {
		all = append(all, fmt.Sprintf("%s in term %d (%s)", g.Role, g.Term, g.Explanation))
	}
	return strings.Join(all, "; ")
}

func reasonOf(err error) string {
	if err == nil {
		return ": the stream ended"
	}
	return ": " + err.Error()
}

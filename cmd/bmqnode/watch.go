package main

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bmqelect/bmqelect/internal/admin"
	"github.com/bmqelect/bmqelect/internal/console"
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
			answers, err := r.all(cmd.Context())
			if err != nil {
				return err
			}
			out := console.New(cmd.OutOrStdout())
			out.Say("watching; Ctrl-C ends it")
			var wg sync.WaitGroup
			for _, a := range answers {
				if a.Addr != "" {
					wg.Go(func() { watch(cmd.Context(), a, out) })
				}
			}
			wg.Wait()
			return nil
		},
	}
	r.register(cmd)
	return cmd
}

// watch follows one node through its restarts.
func watch(ctx context.Context, a answerOf, out *console.Printer) {
	client := admin.NewClient(a.Addr)
	defer client.Close()
	lost := false
	for ctx.Err() == nil {
		err := client.Events(ctx, func() {
			if lost {
				out.Note(time.Now(), string(a.Node), "answers again")
			}
			lost = false
		}, out.Transition)
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

func reasonOf(err error) string {
	if err == nil {
		return ": the stream ended"
	}
	return ": " + err.Error()
}

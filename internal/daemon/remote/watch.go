package remote

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
)

// watchRetry is the pause before a node that was lost is looked for again.
const watchRetry = time.Second

// Watch prints the transitions of every node until ctx ends. It follows a node as soon as
// it is known, whether it answers or not.
func (c *Cluster) Watch(ctx context.Context, out *console.Printer) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var silent []Answer
	followed := map[cluster.NodeID]bool{}
	err := c.walk(ctx, false, func(a Answer) bool {
		if a.Status == nil {
			silent = append(silent, a)
			return false
		}
		if len(followed) == 0 {
			out.Say("watching; Ctrl-C ends it")
		}
		for _, one := range append([]Answer{a}, membersOf(*a.Status)...) {
			if followed[one.Node] {
				continue
			}
			followed[one.Node] = true
			if one.via != "" {
				wg.Go(func() { c.watchOne(ctx, one, out) })
			}
		}
		return false
	})
	if err == nil && len(followed) == 0 {
		err = noAnswer(silent)
	}
	return err
}

// watchOne follows one node through its restarts.
func (c *Cluster) watchOne(ctx context.Context, a Answer, out *console.Printer) {
	client := c.client(a)
	defer client.Close()
	lost := false
	stream := admin.Stream{
		Event: out.Transition,
		Ready: func() {
			if lost {
				out.Note(time.Now(), string(a.Node), "answers again")
			}
			lost = false
		},
		Reset: func(gone admin.Reset) {
			var now []string
			for _, g := range gone.Status.Groups {
				now = append(now, fmt.Sprintf("%s in term %d (%s)", g.Role, g.Term, g.Explanation))
			}
			out.Note(time.Now(), string(a.Node), "%s; now %s", gone.Reason, strings.Join(now, "; "))
		},
	}
	for ctx.Err() == nil {
		err := client.Follow(ctx, &stream)
		if ctx.Err() == nil && !lost {
			lost = true
			why := "the stream ended"
			if err != nil {
				why = err.Error()
			}
			out.Note(time.Now(), string(a.Node), "%s: %s", console.Alert("does not answer"), why)
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
}

package migrate

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// serve is a whole program, until ctx ends.
func serve(ctx context.Context, cfg cluster.Config, work func(context.Context)) error {
	// snippet: client-go
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	err = node.Default().Run(ctx, cluster.Callbacks{
		OnStartedLeading: func(ctx context.Context, _ *cluster.Leadership) error {
			work(ctx) // returns when ctx ends
			return nil
		},
		OnStoppedLeading: func(l *cluster.Leadership) { log.Print("stopped: ", l.Reason()) },
		OnNewLeader:      func(l cluster.Leader) { log.Print("leader: ", l.Node) },
	})
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, node.Close(closing))
	// end
}

// runner is an elector of the old kind.
type runner interface {
	Run(ctx context.Context, work func(context.Context)) error
}

// beside works only while both electors say so.
func beside(
	ctx context.Context, old runner, e *cluster.Election, work func(context.Context),
) error {
	// snippet: both
	return old.Run(ctx, func(ctx context.Context) { // the old elector, as before
		err := e.Run(ctx, cluster.Callbacks{ // and within it the new one
			OnStartedLeading: func(ctx context.Context, _ *cluster.Leadership) error {
				work(ctx)
				return nil
			},
		})
		if err != nil {
			log.Print(err)
		}
	})
	// end
}

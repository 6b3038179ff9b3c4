package embedding

import (
	"context"

	"github.com/bmqelect/bmqelect/cluster"
)

// loader is a cache that must be filled before the work.
type loader interface {
	Load(ctx context.Context) error // returns at once if it is filled
}

// warm leads with a cache that is filled ahead.
func warm(
	ctx context.Context, e *cluster.Election, cache loader,
	serve func(context.Context, *cluster.Leadership, loader) error,
) error {
	// snippet: prepare
	return e.Run(ctx, cluster.Callbacks{
		OnPrepare: func(ctx context.Context) error {
			return cache.Load(ctx) // ends early when another node is named
		},
		OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
			if err := cache.Load(ctx); err != nil { // at once if it is loaded
				return err
			}
			return serve(ctx, l, cache)
		},
	})
	// end
}

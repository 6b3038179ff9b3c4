package migrate

import (
	"context"

	"github.com/bmqelect/bmqelect/cluster"
)

// lock leads once.
func lock(ctx context.Context, e *cluster.Election, work func(lost <-chan struct{})) error {
	// snippet: consul
	l, err := e.Campaign(ctx) // until ctx ends, as with a stop channel
	if err != nil {
		return err
	}
	defer l.Release()
	work(l.Context().Done()) // closed in time for the work to stop
	return nil
	// end
}

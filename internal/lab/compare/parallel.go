package compare

import (
	"context"
	"sync"
	"sync/atomic"
)

// inParallel calls f for each i below n, with the number of the worker that calls it. Once a call
// has failed or ctx has ended, no other begins, and that is the error. It tells done, if that is
// not nil, how many calls have ended, one at a time.
func inParallel(
	ctx context.Context, workers, n int, done func(int),
	f func(ctx context.Context, worker, i int) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	ended := 0
	for worker := range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, worker, i); err != nil {
					cancel(err)
				}
				mu.Lock()
				if ended++; done != nil {
					done(ended)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

package gossip

import (
	"context"
	"fmt"
	"time"
)

// leaveTimeout bounds a goodbye when the caller's context does not.
const leaveTimeout = 3 * time.Second

// Leave says goodbye to the others, so that they see this node as left, not as
// dead. It ends by ctx or after 3 s, whichever is first; an error means that some
// may not have heard. Leaving twice, or after Close, does nothing. Close must follow.
func (g *Gossip) Leave(ctx context.Context) error {
	g.stopJoin()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left {
		return nil
	}
	g.left = true
	if err := g.listener.setMeta(func(w *wireMeta) { w.Leaving = true }); err != nil {
		return fmt.Errorf("leave as node %q: %w", g.cfg.Node, err)
	}
	rest := timeLeft(ctx)
	start := time.Now()
	g.tell(rest / 2)
	if err := g.list.Leave(max(rest-time.Since(start), time.Millisecond)); err != nil {
		return fmt.Errorf("leave as node %q: %w", g.cfg.Node, err)
	}
	return nil
}

// timeLeft returns the time that ctx leaves for a goodbye, at least a millisecond:
// memberlist takes zero for no limit.
func timeLeft(ctx context.Context) time.Duration {
	rest := leaveTimeout
	if deadline, ok := ctx.Deadline(); ok {
		rest = min(rest, time.Until(deadline))
	}
	if ctx.Err() != nil {
		rest = 0
	}
	return max(rest, 2*time.Millisecond)
}

// Close stops everything without a goodbye. When it returns nil, no callback runs
// and none will. It returns ctx's error if ctx ends first, which only a consumer
// that blocks in OnEvent can cause; the rest goes on in the background. Every call
// after the first waits for the same end.
func (g *Gossip) Close(ctx context.Context) error {
	g.closing.Do(func() { go g.shutDown() })
	select {
	case <-g.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close gossip of node %q: %w", g.cfg.Node, ctx.Err())
	}
}

func (g *Gossip) shutDown() {
	g.stopJoin()
	close(g.stop)
	g.mu.Lock()
	g.left = true // memberlist panics when told to leave after its shutdown
	err := g.list.Shutdown()
	g.mu.Unlock()
	if err != nil {
		g.log.Debug("memberlist did not shut down cleanly", "error", err)
	}
	g.wg.Wait()
	close(g.closed)
}

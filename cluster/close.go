package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// Close ends this node's part in the election. Guarded work is told to stop and waited for, at most
// until the lease ends. Only then is leadership handed over, to the best follower. If ctx ends
// before, the node leaves without handing over, and the error says so: the others wait until its
// lease has run out, so the work that goes on still excludes theirs.
//
// The election may be opened again. Like a node that has just started, this one then supports
// nobody until every promise that it may have given has lapsed. Closing again does nothing. The
// default election is closed with its node; to close it alone is an error.
//
// Close returns at most a second after ctx has ended, even if the node hangs. The error then says
// so, and the election ends as soon as the node goes on.
func (e *Election) Close(ctx context.Context) error {
	err := errors.New("it is the node's own and is closed with it, by Node.Close")
	if e.p.Name != DefaultGroup {
		err = e.n.loop.CloseElection(ctx, e.p)
	}
	if err != nil {
		return fmt.Errorf("close election %q: %w", e.p.Name, err)
	}
	return nil
}

// Close ends the node. Guarded work is told to stop and waited for, at most until its lease ends.
// Then leadership is handed over to the best follower, and the node says goodbye. It leaves no
// goroutine behind. Closing twice is harmless; the first ctx to end counts for both.
//
// If ctx ends before the work has stopped, nothing is handed over: see Election.Close. The data
// directory then stays locked until the work is released, at most until its deadline, which the
// error names. A node that started on the directory before that would prove to the others that
// this one is gone, and they would elect a leader beside the work that goes on. The same holds for
// work that goes on after the disk has failed. Work without a lease (a single voter,
// UnsafeNoScouting) has the time of one lease after it is told to stop.
//
// Close returns at most a second after ctx has ended, even if the disk, the logger or the network
// hangs. The error then says what hangs. Until it goes on, the goroutines that wait for it stay,
// and the directory stays locked, except if only the logger hangs.
func (n *Node) Close(ctx context.Context) error {
	n.closing.Do(func() {
		holders.Store(n, true)
		go n.close()
	})
	stop := context.AfterFunc(ctx, func() { n.cancelClose(context.Cause(ctx)) })
	defer stop()
	select {
	case <-n.gone:
		return n.closeErr
	case <-ctx.Done():
	}
	select {
	case <-n.gone:
		return n.closeErr
	case <-time.After(2 * loop.CleanupTime):
	}
	dir := fmt.Sprintf("; data directory %s stays locked until it has", n.cfg.DataDir)
	select {
	case <-n.released:
		dir = ""
	default:
	}
	return fmt.Errorf("close node %s: %s%s: %w", n.cfg.Node, n.stage.Load(), dir, context.Cause(ctx))
}

func (n *Node) close() {
	defer close(n.gone)
	ctx := n.closeCtx
	n.stage.Store(loop.ErrHeldUp.Error())
	err := n.loop.CloseAll(ctx)
	err = errors.Join(err, n.leaveNetwork(ctx))
	if n.Err() == ErrClosed && !n.hooks.Dead() {
		n.recorder.Record(recording.Record{Kind: recording.Ended})
	}
	n.stop()
	err = errors.Join(err, n.releaseDir(ctx))
	n.stage.Store("its logger blocks")
	n.closeErr = errors.Join(err, n.lines.close(ctx))
	n.cancelClose(nil)
}

// leaveNetwork takes the node off the network. Call it after the elections have stopped: other
// nodes take a refused dial as proof of that.
func (n *Node) leaveNetwork(ctx context.Context) error {
	n.stage.Store("its links and its gossip have not ended")
	err := n.mesh.Close(ctx)
	if n.gossip != nil {
		if ctx.Err() == nil {
			n.gossip.Leave() // a courtesy: elections need only the goodbye of the mesh
		}
		err = errors.Join(err, n.gossip.Close(ctx))
	}
	return err
}

// stop stops the driver and the goroutines beside it, except for the watcher of deadlines.
func (n *Node) stop() {
	n.stage.Store(loop.ErrHeldUp.Error())
	n.loop.Stop()
	close(n.quit)
	n.health.Close()
	n.hub.close()
	n.stage.Store("a write to its disk has not returned")
	<-n.loop.Persisted()
	<-n.recorder.Done()
	if n.gossip != nil {
		<-n.gossip.Saved()
	}
}

// releaseDir releases the data directory when no guarded work of this node goes on any more. If ctx
// ends before, a goroutine does so, at the latest when the last deadline of that work has passed.
func (n *Node) releaseDir(ctx context.Context) error {
	over, until := n.loop.WorkOver()
	select {
	case <-over: // also if ctx has ended
		return n.closeDir()
	default:
	}
	select {
	case <-over:
		return n.closeDir()
	case <-ctx.Done():
	}
	n.until.Store(&until)
	go func() {
		<-over
		_ = n.closeDir() // nobody can act on a failure
	}()
	return fmt.Errorf("data directory %s stays locked until the guarded work has stopped, "+
		"at the latest until %s: %w",
		n.cfg.DataDir, until.Format(time.StampMilli), context.Cause(ctx))
}

func (n *Node) closeDir() error {
	n.loop.StopWatcher()
	err := n.store.Close()
	holders.Delete(n)
	close(n.released)
	return err
}

// holders are the nodes of this process that are closed, or being closed, and still hold their data
// directory. Each *Node is a key.
var holders sync.Map

// holderOf returns the node among holders that holds a data directory, or nil.
func holderOf(dir string) *Node {
	wanted, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	for n := range holders.Range {
		if has, err := os.Stat(n.(*Node).cfg.DataDir); err == nil && os.SameFile(has, wanted) {
			return n.(*Node)
		}
	}
	return nil
}

// openDir opens the data directory. If a closed node of this process holds it for guarded work that
// may go on, openDir waits until the work has stopped or ctx ends.
func (n *Node) openDir(ctx context.Context) (*store.Store, error) {
	for {
		old := holderOf(n.cfg.DataDir) // first, because it may release the directory at any moment
		s, err := n.openStore()
		if old == nil || !errors.Is(err, store.ErrLocked) {
			return s, err
		}
		until := old.until.Load()
		if until == nil {
			return nil, fmt.Errorf("%w: node %s of this process is being closed and has not ended: %s",
				err, old.cfg.Node, old.stage.Load())
		}
		n.log.Info("waiting for the data directory: guarded work of the node that was closed may go on",
			"until", *until)
		select {
		case <-old.released:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: guarded work of node %s, which was closed in this process, "+
				"may go on until %s: %w",
				err, old.cfg.Node, until.Format(time.StampMilli), context.Cause(ctx))
		}
	}
}

// canceled is the context of calls that do not wait.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

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

// Close ends this node's part in the election. Guarded work is told to stop and
// waited for, at most until the lease ends; only then is leadership handed over,
// to the best follower. If ctx ends before, the node leaves without handing over:
// the others then wait until its lease has run out, so that the work which goes on
// still excludes theirs, and the error says so.
//
// The election may be opened again; like a node that has just started this one
// then supports nobody until what it may have promised has lapsed. Closing again
// does nothing. The default election is closed with its node: to close it is an error.
//
// Close returns at most a second after ctx has ended, whatever holds this node
// up. If that keeps it from stopping the election, the error says so, and the election
// ends as soon as the node goes on.
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

// Close ends the node. Guarded work is told to stop and waited for, at most until
// its lease ends; then leadership is handed over to the best follower, and the node says
// goodbye. It leaves no goroutine behind. Closing twice is harmless; the first ctx to
// end counts for both.
//
// If ctx ends before the work has stopped, nothing is handed over: see Election.Close.
// The data directory then stays locked until the work is released, or otherwise until its
// deadline, which the error names: a node that started on it before would prove to the
// others that this one is gone, and they would elect beside the work that goes on. The
// same holds for work that goes on after the disk has failed. Work without a lease
// (a single voter, UnsafeNoScouting) has one lease's time from when it is told to stop.
//
// Close returns at most a second after ctx has ended, also if the disk, the logger or
// the network hangs. The error then says what hangs. The directory stays locked, unless it
// is the logger, and the goroutines that wait stay, until that goes on.
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

// leaveNetwork takes the node off the network. The listener closes only after the elections
// have stopped: a refused dial is proof of that.
func (n *Node) leaveNetwork(ctx context.Context) error {
	n.stage.Store("its links and its gossip have not ended")
	err := n.mesh.Close(ctx)
	if n.gossip != nil {
		if ctx.Err() == nil {
			n.gossip.Leave() // a courtesy: the mesh has said what elections need to know
		}
		err = errors.Join(err, n.gossip.Close(ctx))
	}
	return err
}

// stop stops the driver and what runs beside it, but not the watcher of deadlines.
func (n *Node) stop() {
	n.stage.Store(loop.ErrHeldUp.Error())
	n.loop.Stop()
	close(n.quit)
	n.hub.close()
	n.stage.Store("a write to its disk has not returned")
	<-n.loop.Persisted()
	<-n.recorder.Done()
	if n.gossip != nil {
		<-n.gossip.Saved()
	}
}

// releaseDir releases the data directory when no guarded work of this node may go on any
// more. If ctx ends before, that is left to a goroutine, which ends at the latest
// deadline of that work.
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
		_ = n.closeDir() // a failure changes nothing now
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

// holders are the nodes of this process that were closed and still have their data
// directory: each *Node is a key.
var holders sync.Map

// holderOf returns the closed node that has a data directory; nil if there is none.
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

// openDir opens the data directory. If a closed node of this process has it for
// guarded work that may go on, it waits until that has stopped or ctx ends.
func (n *Node) openDir(ctx context.Context) (*store.Store, error) {
	for {
		old := holderOf(n.cfg.DataDir) // before: it may let go at any moment
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

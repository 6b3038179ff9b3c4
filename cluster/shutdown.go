package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
)

// Close ends the node. Guarded work is told to stop and waited for, at most until
// its lease ends; then leadership is handed over to the best follower, and the node says
// goodbye. It leaves no goroutine behind. Closing twice is harmless; the first ctx to
// end counts for both.
//
// If ctx ends before the work has stopped, nothing is handed over: see Election.Close.
// The data directory then stays locked until the work is released, or else until its
// deadline, which the error names: a node that started on it before would prove to the
// others that this one is gone, and they would elect beside the work that goes on. The
// same holds for work that goes on after the disk has failed. Work without a lease
// (a single voter, UnsafeNoScouting) has one lease's time from when it is told to stop.
//
// Close returns at most a second after ctx has ended, also if the disk, the logger or
// the network hangs. The error then says what hangs. The directory stays locked, and
// the goroutines that wait stay, until that goes on.
func (n *Node) Close(ctx context.Context) error {
	n.closing.Do(func() {
		holders.add(n)
		go n.close()
	})
	stop := context.AfterFunc(ctx, func() { n.urge(context.Cause(ctx)) })
	defer stop()
	select {
	case <-n.gone:
		return n.closeErr
	case <-ctx.Done():
	}
	select {
	case <-n.gone:
		return n.closeErr
	case <-time.After(2 * patience):
		return fmt.Errorf("close node %s: %s; data directory %s stays locked until it has: %w",
			n.cfg.Node, n.stage.Load(), n.cfg.DataDir, context.Cause(ctx))
	}
}

func (n *Node) close() {
	defer close(n.gone)
	n.stage.Store(errHeldUp.Error())
	err := n.bowOut(n.hurry)
	n.call(func() { n.finish(ErrClosed) })
	err = errors.Join(err, n.leave(n.hurry))
	n.end()
	n.closeErr = errors.Join(err, n.letGo(n.hurry))
	n.urge(nil)
}

// leave takes the node off the network. The listener closes only after the elections
// have stopped: a refused dial is proof of that.
func (n *Node) leave(ctx context.Context) error {
	n.stage.Store("its links and its gossip have not ended")
	err := n.mesh.Close(ctx)
	if n.gossip != nil {
		n.sayGoodbye(ctx)
		err = errors.Join(err, n.gossip.Close(ctx))
	}
	return err
}

// leaveTime bounds the goodbye to gossip. It is a courtesy: the mesh has said what
// elections need to know, and where everybody leaves at once nobody answers.
const leaveTime = 500 * time.Millisecond

func (n *Node) sayGoodbye(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if err := n.gossip.Leave(ctx); err != nil {
		n.log.Debug("left without a goodbye to all", "error", err)
	}
}

// end stops the driver and the persister and waits for them.
func (n *Node) end() {
	n.stage.Store(errHeldUp.Error())
	close(n.quit)
	<-n.driven
	n.hub.close()
	n.stage.Store("a write to its disk has not returned")
	<-n.persisted
	if n.remember != nil {
		<-n.remember.done
	}
}

// endWatch stops the warden and waits for it.
func (n *Node) endWatch() {
	close(n.unwatch)
	<-n.watched
}

// letGo releases the data directory when no guarded work of this node may go on any
// more. If ctx ends before, that is left to a goroutine, which ends at the latest
// deadline of that work.
func (n *Node) letGo(ctx context.Context) error {
	if n.dead() {
		return n.free()
	}
	for _, l := range n.cut {
		select {
		case <-l.Done():
			continue
		default:
		}
		select {
		case <-l.Done():
		case <-ctx.Done():
			until := n.workUntil()
			n.until.Store(&until)
			go func() { _ = n.freeWhenStopped() }() // a failure to close changes nothing now
			return fmt.Errorf("data directory %s stays locked until the guarded work has stopped, "+
				"at the latest until %s: %w",
				n.cfg.DataDir, until.Format(time.StampMilli), context.Cause(ctx))
		}
	}
	return n.freeWhenStopped()
}

// workUntil is the latest deadline of the work that may go on.
func (n *Node) workUntil() (until time.Time) {
	for _, l := range n.cut {
		if at := l.Deadline(); l.at() != over && at.After(until) {
			until = at
		}
	}
	return until
}

func (n *Node) freeWhenStopped() error {
	for _, l := range n.cut {
		<-l.Done()
	}
	return n.free()
}

// free releases the data directory.
func (n *Node) free() error {
	n.endWatch()
	err := n.store.Close()
	holders.remove(n)
	close(n.released)
	return err
}

// holders are the nodes of this process that were closed and still have their data
// directory.
var holders holderSet

type holderSet struct {
	mu    sync.Mutex
	nodes map[*Node]bool
}

func (h *holderSet) add(n *Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		h.nodes = map[*Node]bool{}
	}
	h.nodes[n] = true
}

func (h *holderSet) remove(n *Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.nodes, n)
}

// of returns the closed node that has a data directory; nil if there is none.
func (h *holderSet) of(dir string) *Node {
	wanted, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range h.nodes {
		if has, err := os.Stat(n.cfg.DataDir); err == nil && os.SameFile(has, wanted) {
			return n
		}
	}
	return nil
}

// openDir opens the data directory. If a closed node of this process has it for
// guarded work that may go on, it waits until that has stopped or ctx ends.
func (n *Node) openDir(ctx context.Context, disk store.Disk) (*store.Store, error) {
	for {
		old := holders.of(n.cfg.DataDir) // before: it may let go at any moment
		s, err := n.openStore(disk)
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

// canceled is the context of those who do not wait.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

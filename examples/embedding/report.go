package embedding

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// reporter writes a report, again and again, on whichever node leads.
type reporter struct {
	put   func(ctx context.Context, token lsn.LSN, text string) error // to the archive
	every time.Duration
}

// snippet: run
// lead lets the reporter work on this node whenever it leads, until ctx ends.
func (r *reporter) lead(ctx context.Context, e *cluster.Election) error {
	return e.Run(ctx, cluster.Callbacks{
		OnStartedLeading: r.work,
		OnStoppedLeading: func(l *cluster.Leadership) { fmt.Println("no more:", l.Reason()) },
		OnNewLeader:      func(l cluster.Leader) { fmt.Println("leader:", l.Node) },
	})
}

// end

// snippet: work
// work is what only one node may do. ctx is canceled in time for it to stop.
func (r *reporter) work(ctx context.Context, l *cluster.Leadership) error {
	for ctx.Err() == nil {
		token, err := l.NextLSN()
		if err != nil {
			return err // the lease has run out
		}
		if err := r.put(ctx, token, "all is well"); err != nil {
			return err // a *lsn.StaleError means that a newer leader has written
		}
		select {
		case <-time.After(r.every):
		case <-ctx.Done():
		}
	}
	return nil
}

// end

// campaign does with a handle what lead does with callbacks.
func (r *reporter) campaign(ctx context.Context, e *cluster.Election) error {
	l, err := e.Campaign(ctx)
	for err == nil {
		work, cancel := context.WithCancel(l.Context()) // ends with the leadership
		stop := context.AfterFunc(ctx, cancel)          // and with ctx
		failed := r.work(work, l)
		stop()
		cancel()
		if ctx.Err() == nil && l.Context().Err() != nil {
			l, err = l.Again(ctx) // the work has stopped, to go on if this node still leads
			continue
		}
		l.Release() // it has stopped: now, and not before, others may lead
		if failed != nil {
			return failed // to campaign again at once would gain nothing
		}
		l, err = e.Campaign(ctx)
	}
	return err // ctx has ended, or the node has
}

// snippet: fence
// Archive is the resource: it takes reports from the newest leader alone.
type Archive struct {
	mu    sync.Mutex
	fence *lsn.Fence
	save  func(newest lsn.LSN, text string) error // durably, both or nothing
}

// OpenArchive opens an archive whose disk has the given LSN and report.
func OpenArchive(newest lsn.LSN, save func(lsn.LSN, string) error) *Archive {
	return &Archive{fence: lsn.NewFence(newest), save: save}
}

// Put files a report, or fails with a *lsn.StaleError.
func (a *Archive) Put(token lsn.LSN, text string) error {
	a.mu.Lock() // from the question to the end of the act
	defer a.mu.Unlock()
	if err := a.fence.Admit(token); err != nil {
		return err
	}
	return a.save(token, text)
}

// end

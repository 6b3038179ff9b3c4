package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/lsn"
)

// Errors of Open and Lookup.
var (
	ErrOpen        = errors.New("the election is open already")
	ErrNotOpen     = errors.New("no election of that name is open")
	ErrCampaigning = errors.New("this node campaigns in the election already, or leads it")
)

// OpenTime is how long the disk has to take a new election. No disk on which a node
// could be elected takes that long.
const OpenTime = 10 * time.Second

// Open begins this node's part in an election. It fails if the disk does not answer within
// OpenTime. The name then stays reserved until the disk answers.
func (l *Loop) Open(name string, s Setup) (*Election, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), OpenTime, ErrHeldUp)
	defer cancel()
	e, err := l.newElection(name, s)
	if err != nil {
		return nil, err
	}
	var taken atomic.Bool // by the driver, which enters it, or by the caller, who waits no more
	wanted := func() bool { return taken.CompareAndSwap(false, true) }
	opened := make(chan error, 1)
	err = l.Do(ctx, func(d *Driver) error {
		return d.open(e, wanted, func(err error) { opened <- err })
	})
	if err != nil {
		return nil, err
	}
	failed, err := await(ctx, l, opened, l.persisted)
	switch {
	case err == nil:
		return e, failed
	case ctx.Err() == nil:
		return nil, err
	case wanted():
		return nil, fmt.Errorf("the disk has not answered within %s", OpenTime)
	}
	ctx, enough := context.WithTimeoutCause(context.Background(), CleanupTime, ErrHeldUp)
	defer enough()
	failed, err = await(ctx, l, opened, l.ended) // the driver enters it at this moment
	return e, cmp.Or(err, failed)
}

// NewElection returns an election that is still to be entered, and reads the disk for it.
func (l *Loop) NewElection(name string, s Setup) (*Election, error) {
	e, err := l.newElection(name, s)
	if err == nil {
		err = e.load()
	}
	return e, err
}

// load reads what is durable of an election.
func (e *Election) load() error {
	disk, err := e.common.Store.Group(e.Name)
	if err == nil {
		e.g.take(disk)
	}
	return err
}

// take takes what is durable.
func (g *group) take(disk store.Durable) {
	g.durable = &disk
	if r := disk.Record; r.LSN != (lsn.LSN{}) {
		g.own().values = map[[32]byte][]byte{r.Value.Hash: disk.Value}
	}
}

// open enters an election, or fails, and then calls opened. It waits for the disk if a value is
// to be read, or if an election of that name has just been closed: its last term must be on disk
// before the term is read again, or a vote could be given twice. Then it must still be wanted.
func (d *Driver) open(e *Election, wanted func() bool, opened func(error)) error {
	if err := d.reserve(e.Name); err != nil {
		return err
	}
	disk, ok := d.Store.Known(e.Name)
	if ok && !d.ending[e.Name] {
		e.g.take(disk)
		d.enter(e.g)
		opened(nil)
		return nil
	}
	d.opening[e.Name] = true
	d.persister.note(func() error {
		err := e.load()
		d.later(func(d *Driver) {
			delete(d.opening, e.Name)
			switch err = cmp.Or(err, d.Err()); {
			case err != nil:
			case d.leaving:
				err = ErrClosed
			case !wanted():
				err = ErrNotOpen
			default:
				d.enter(e.g)
			}
			opened(err)
		})
		return nil
	})
	return nil
}

// forgetClosed lets the disk forget an election that was closed, after all writes of it.
func (d *Driver) forgetClosed(g *group) {
	d.dismiss(g)
	if _, known := d.prefixed(g.Name); known && !g.guest.idle {
		d.shut[g.Name] = d.Now().Add(shutTime)
	}
	d.ending[g.Name] = true
	d.persister.note(func() error {
		d.Store.Forget(g.Name)
		d.later(func(d *Driver) { delete(d.ending, g.Name) })
		return nil
	})
}

// reserve returns why an election of that name cannot be opened.
func (d *Driver) reserve(name string) error {
	d.forgetReleased()
	switch {
	case d.Err() != nil:
		return d.Err()
	case d.leaving:
		return ErrClosed
	case d.groups[name] != nil || d.opening[name]:
		return ErrOpen
	case d.closed[name] != nil:
		return fmt.Errorf("the work of its last leadership here has not been released: %w",
			ErrCampaigning)
	}
	return nil
}

// Lookup returns the election of that name that is open. With keep it stays open although nobody
// uses it.
func (l *Loop) Lookup(name string, keep bool) (*Election, error) {
	return ask(context.Background(), l, func(d *Driver) (*Election, error) {
		if g := d.groups[name]; g != nil && g.Ended() == nil {
			if keep {
				d.dismiss(g)
			}
			return g.Election, nil
		}
		return nil, cmp.Or(d.Err(), ErrNotOpen)
	})
}

// Settle waits, at most CleanupTime, until the driver has carried out the requests of an
// election's leaderships. A driver that hangs does so when it goes on.
func (l *Loop) Settle(e *Election) {
	ctx, cancel := context.WithTimeout(context.Background(), CleanupTime)
	defer cancel()
	_ = l.Do(ctx, func(d *Driver) error {
		d.stepRequests(e.g)
		d.forgetReleased()
		return nil
	})
}

// CloseElection ends an election, and then forgets it. It tells guarded work to stop and waits for
// it, at most until ctx ends: then nothing is handed over, and the error says so.
func (l *Loop) CloseElection(ctx context.Context, e *Election) error {
	e.dropped.Store(true)
	e.Close(ErrClosed, false)
	return l.awaitEnd(ctx, e)
}

// CloseAll ends all elections as CloseElection does. No election can be opened any more.
func (l *Loop) CloseAll(ctx context.Context) (err error) {
	var all []*Election
	l.view(func(d *Driver) {
		d.leaving = true
		for _, g := range d.groups {
			all = append(all, g.Election)
		}
		d.tellAll(func(d *Driver, g *group) { d.cede(g, closeGroup) })
	})
	stop := context.AfterFunc(ctx, func() { // no time is left to wait for successors
		l.later(func(d *Driver) { d.cessions.most.size = math.MaxInt })
	})
	defer stop()
	for _, e := range all {
		err = errors.Join(err, l.awaitEnd(ctx, e))
	}
	if err == nil && l.Err() == nil { // each election has asked the disk to write what it used
		l.persister.note(l.Store.GiveBack)
	}
	l.view(func(d *Driver) { d.end(ErrClosed) })
	return err
}

func closeGroup(d *Driver, g *group) {
	g.Close(ErrClosed, false)
	d.stepRequests(g)
}

// awaitEnd waits until an election that is being closed has ended. When ctx ends, it ends the
// election without a handover.
func (l *Loop) awaitEnd(ctx context.Context, e *Election) error {
	_, err := await(ctx, l, e.Gone.Done(), l.ended)
	if err == nil || ctx.Err() == nil {
		return nil
	}
	cut := e.Close(ErrClosed, true)
	select {
	case <-e.Gone.Done():
	case <-l.ended:
	case <-time.After(CleanupTime):
		return fmt.Errorf("%w: %w", ErrHeldUp, context.Cause(ctx))
	}
	if cut {
		return fmt.Errorf("guarded work had not stopped, so nothing was handed over: %w",
			context.Cause(ctx))
	}
	return nil
}

// WorkOver returns a channel that is closed when no guarded work goes on any more, and the latest
// time by which it ends. Call it after Stop. In a process that a test has killed no work goes on.
func (l *Loop) WorkOver() (over <-chan struct{}, until time.Time) {
	var works []<-chan struct{}
	wall, now, all := time.Now(), l.Now(), make(chan struct{})
	for _, ended := range []map[string]*group{l.last.groups, l.last.closed} {
		for _, g := range ended {
			if l.Hooks.Dead() {
				g.Feed(leadership.Release{ID: g.State().ID})
			}
			if work, deadline := g.Working(); work != nil {
				works = append(works, work)
				if at := wall.Add(deadline.Sub(now)); at.After(until) {
					until = at
				}
			}
		}
	}
	if len(works) == 0 {
		close(all)
		return all, until
	}
	go func() {
		defer close(all)
		for _, work := range works {
			<-work
		}
	}()
	return all, until
}

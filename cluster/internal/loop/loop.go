package loop

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/cluster/internal/measure"
	"github.com/bmqelect/bmqelect/cluster/internal/recorder"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Errors of every request to a loop.
var (
	ErrClosed = errors.New("the node is closed")
	ErrHeldUp = errors.New("the node is held up and has not answered")
)

// CleanupTime is how long a step of cleaning up may take after ctx has ended. It takes
// milliseconds unless something hangs. No call takes more than two such steps.
const CleanupTime = 500 * time.Millisecond

// Config is what a loop needs of its node.
type Config struct {
	Node    elector.NodeID
	Voters  []elector.NodeID // without those that were declared lost
	Lost    []elector.NodeID // voters that were declared lost
	Meta    string           // what the node tells about itself when it leads
	MinTerm lsn.Term

	Log      hclog.Logger   // never blocks
	Hooks    testhook.Hooks // with all functions, and a clock
	Store    *store.Store
	Measure  *measure.Measure
	Recorder *recorder.Recorder

	// The driver calls these, so they must not wait. Publish gets each transition, with the Meta
	// of its leader. Claimed gets what is wrong with a peer's claim, to lead or to have the record.
	Publish func(group string, t elector.Transition, at time.Time, leaderMeta string)
	Claimed func(kind findings.Kind, peer elector.NodeID, why string)
	// Prefixed says how to take part in an election that others ask for, if its name has a prefix
	// of the configuration; nil if there is none. At most GuestLimit elections are open because of
	// messages; one that nobody uses for GuestIdle is closed.
	Prefixed   func(name string) (Setup, bool)
	GuestLimit int
	GuestIdle  time.Duration
	// Differs says which connected member is configured with other voters; "" if none is.
	Differs func() string
}

// Mesh sends to other nodes. It never waits.
type Mesh interface {
	Send(to elector.NodeID, group string, m elector.Message) bool
	Notify(to elector.NodeID, n netmesh.Note) bool
	Change(to elector.NodeID, session uint64, changes []pair.Change) bool
	Beat(to elector.NodeID, session uint64, b pair.Beat) bool
	Ack(to elector.NodeID, session uint64, a pair.Ack) bool
	Disconnect(peer elector.NodeID, why string)
}

// Loop runs the elections of a node, from Start to Stop.
type Loop struct {
	*common

	mesh      Mesh
	Linked    chan struct{} // has an element after a link came up
	inbox     chan event
	quit      chan struct{}
	ended     chan struct{} // closed when the driver has ended
	last      *Driver       // set before ended is closed
	persisted chan struct{} // closed when the persister has ended
}

// common is what the driver and all others share.
type common struct {
	Config

	watcher   *guarded.Watcher
	persister *persister
	waiting   waiting
	first     *Election // the default one
	surge     limit.Surge[transitionKind]
	calls     calls
	classesMu sync.Mutex
	classes   map[string]*class // of entered elections, by configuration
	paused    atomic.Pointer[pause]
	health    atomic.Pointer[string] // why the probes find the node unfit; nil before the first result
	done      chan struct{}          // closed when the node takes part in no election any more
	why       error                  // the reason; set before done is closed

	others atomic.Pointer[map[elector.NodeID]bool] // voters that are not configured

	Uninvited map[string]*atomic.Uint64 // see newUninvited
}

// event is an element of the driver's inbox: a message from a peer or, if do is set, a function
// to run.
type event struct {
	from  elector.NodeID
	group string
	msg   elector.Message
	do    func(*Driver)
	// posted is the node's age when post sent the event; 0 if post did not send it.
	posted time.Duration
}

// InboxSize bounds the events that wait for the driver. A full inbox blocks the readers of the
// links, and TCP then blocks the senders: nothing is lost and no queue grows.
const InboxSize = 256

// New returns a loop. Start is to be called next.
func New(cfg Config) *Loop {
	c := &common{
		Config: cfg, watcher: guarded.NewWatcher(cfg.Hooks.Clock),
		waiting: waiting{ready: make(chan struct{}, 1)}, calls: newCalls(), done: make(chan struct{}),
		Uninvited: newUninvited(),
		surge:     limit.Surge[transitionKind]{Most: mostAtATime},
		classes:   map[string]*class{},
	}
	c.others.Store(&map[elector.NodeID]bool{})
	l := &Loop{
		common: c, Linked: make(chan struct{}, 1), inbox: make(chan event, InboxSize),
		quit: make(chan struct{}), ended: make(chan struct{}), persisted: make(chan struct{}),
	}
	c.persister = &persister{
		write: func(g groups) error {
			return c.Measure.Timed(func() error { return c.Store.Persist(g) })
		},
		check: c.Store.Check, done: l.onPersisted, pending: make(chan struct{}, 1),
	}
	c.loadPause()
	return l
}

// Start runs the loop with a first election. Open adds more.
func (l *Loop) Start(m Mesh, first *Election) {
	l.mesh, l.first = m, first
	d := newDriver(l.common, m)
	d.later = l.later
	d.enter(first.g)
	go l.drive(d)
	go func() { defer close(l.persisted); l.persister.run(l.quit) }()
	go l.watcher.Run()
	if l.Prefixed != nil {
		go l.keepGuests()
	}
}

// Stop ends the driver and the persister, but not the watcher of deadlines. Call CloseAll first.
func (l *Loop) Stop() {
	close(l.quit)
	<-l.ended
	l.LogSurge()
}

// Persisted is closed when the persister has ended: nothing more is written then.
func (l *Loop) Persisted() <-chan struct{} { return l.persisted }

// StopWatcher ends the watcher of deadlines. Call it when no guarded work is left.
func (l *Loop) StopWatcher() { l.watcher.Stop() }

// Now is the time on the node's own clock.
func (c *common) Now() elector.Time { return elector.Time(c.Hooks.Clock.Now()) }

// Done is closed when the node takes part in no election any more.
func (c *common) Done() <-chan struct{} { return c.done }

// Err is the reason why Done is closed; nil while it is open.
func (c *common) Err() error {
	select {
	case <-c.done:
		return c.why
	default:
		return nil
	}
}

// InboxLength is how many events wait for the driver.
func (l *Loop) InboxLength() int { return len(l.inbox) }

// post hands e to the driver. It waits no longer than ctx for room in the inbox. The error
// is ErrClosed or the cause of ctx.
func (l *Loop) post(ctx context.Context, e event) error {
	e.posted = l.Measure.Age()
	select {
	case l.inbox <- e:
		return nil
	case <-l.ended:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// later runs f on the driver unless the driver has ended. It does not wait for f.
func (l *Loop) later(f func(*Driver)) { _ = l.post(context.Background(), event{do: f}) }

// answer is what f returned that ran on another goroutine.
type answer[T any] struct {
	value T
	err   error
}

// ask runs f on the driver and waits for its answer, but no longer than ctx, even if the driver
// hangs. The error is that of f, why the node has ended, or the cause of ctx. After one of the
// latter two f may still run if it had begun. If it had not, it never will.
func ask[T any](ctx context.Context, l *Loop, f func(*Driver) (T, error)) (none T, err error) {
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	result := make(chan answer[T], 1)
	var taken atomic.Bool // by the driver, or by the caller so that f does not run
	run := func(d *Driver) {
		if taken.CompareAndSwap(false, true) {
			value, err := f(d)
			result <- answer[T]{value, err}
		}
	}
	if err := l.post(ctx, event{do: run}); err != nil {
		return none, err
	}
	a, err := await(ctx, l, result, l.ended)
	if err != nil {
		taken.Store(true)
		a, err = await(ctx, l, result, l.ended) // f may have returned meanwhile
	}
	return a.value, cmp.Or(err, a.err)
}

// Do is ask for an f that only succeeds or fails.
func (l *Loop) Do(ctx context.Context, f func(*Driver) error) error {
	_, err := ask(ctx, l, func(d *Driver) (struct{}, error) { return struct{}{}, f(d) })
	return err
}

// await returns what comes from c, or the error that explains why nothing comes: that of the node
// after ended, or the cause of ctx. What has come counts, even if both have ended.
func await[T any](ctx context.Context, l *Loop, c <-chan T, ended <-chan struct{}) (
	got T, err error,
) {
	select {
	case got = <-c:
		return got, nil
	case <-ended:
		err = cmp.Or(l.Err(), ErrClosed)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	select {
	case got = <-c:
		return got, nil
	default:
		return got, err
	}
}

// view runs f on the driver or, if the driver has ended, on the caller's goroutine.
func (l *Loop) view(f func(*Driver)) {
	err := l.Do(context.Background(), func(d *Driver) error { f(d); return nil })
	if err != nil {
		<-l.ended
		f(l.last)
	}
}

// waiting lists the elections that have requests for the driver, each of them once.
type waiting struct {
	mu    sync.Mutex
	all   []*Election
	ready chan struct{} // has an element if all is not empty
}

// add is called under the lock of the election's machine. It never waits for the driver.
func (w *waiting) add(e *Election) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !e.waits {
		e.waits = true
		w.all = append(w.all, e)
		guarded.Wake(w.ready)
	}
}

// take takes a batch at most.
func (w *waiting) take() []*Election {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.all), batch)
	some := w.all[:n:n]
	if w.all = w.all[n:]; len(w.all) == 0 {
		w.all = nil
	} else {
		guarded.Wake(w.ready)
	}
	for _, e := range some {
		e.waits = false
	}
	return some
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

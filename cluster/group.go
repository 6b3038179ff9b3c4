package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// group is one election of this node. The driver owns what is neither atomic nor guarded
// by the lock.
type group struct {
	name       string
	terms      elector.Terms // that the disk knew at first
	config     elector.Config
	elector    *elector.Machine
	tick       timer        // when the machine wants a tick
	putOff     elector.Time // the deadline that the machine has put off by HeldUp
	leadTerm   lsn.Term     // the term that the sequencer issues for; 0 if this node does not lead
	issued     lsn.LSN      // newest issued LSN that the machine knows of
	sequencer  lsn.Sequencer
	since      time.Time // of the newest transition, by the wall clock
	leaderMeta string    // of the leader that it had
	measure    groupMeasure
	follows    NodeID              // the leader, as of the newest transition
	drawnBy    NodeID              // it, if its claim drew this node from another; see judgeClaim
	silences   map[NodeID]silences // by voter

	promise     time.Duration // how long a promise to a leader binds
	inTurn      bool          // stands by rank and round trips
	restEnd     atomic.Int64  // of the rest after a step-down, as of the last step
	ledLast     atomic.Bool   // while elections are paused: as of the last transition
	priority    atomic.Int64  // that this node has, or is about to have
	handoverEnd *handoverEnd  // of the handover that is under way; nil while nobody waits
	stood       chan struct{} // closed when this node is a candidate, or was
	gone        chan struct{} // closed when this node takes no part in it any more

	now     func() elector.Time
	paused  func() error // until when elections are paused on this node; nil if they are not
	watcher *deadlineWatcher
	// leaseEnd is the elector.Time before which this node may say that it leads; 0 if it
	// does not lead. It and the ends of the leaderships are copies of what the machine below
	// knows, for those who ask without the lock.
	leaseEnd atomic.Int64
	overdue  atomic.Pointer[Leadership] // whose work is to be reported

	mu         sync.Mutex
	leadership *leadership.Machine // of this node's leaderships
	holder     *Leadership         // that campaigns, serves, or was not released; nil for none
	lastID     leadership.ID
	requests   []elector.Input // what leadership asks of elector
	deadline   timer           // the watcher's lock guards it
	waits      bool            // is in waitingGroups, whose lock guards it
	ended      error           // why the election is closed on this node; nil while it is open
	dropped    bool            // it is to be forgotten once it has ended
	workEnds   workEnds
}

// newGroup returns an election that is still to be entered.
func (n *Node) newGroup(name string, cfg ElectionConfig) (*group, error) {
	mayStand := !cfg.NotCandidate && slices.Contains(n.cfg.Voters, n.cfg.Node)
	config := n.cfg.elector(cfg)
	cfg.NotCandidate = false // it may change: leadership tells the machine
	machine, err := elector.New(n.cfg.elector(cfg))
	if err != nil {
		return nil, err
	}
	terms, err := n.store.Group(name)
	if err != nil {
		return nil, err
	}
	n.log.Debug("election opened", "group", name, "term", terms.Entered,
		"reserved", terms.Reserved)
	g := &group{
		name: name, terms: terms, config: config, elector: machine,
		measure: groupMeasure{lease: cfg.Timing.Lease}, promise: cfg.Timing.Promise(),
		inTurn:   cfg.Timing.MinRandomWait != 0,
		silences: map[NodeID]silences{},
		stood:    make(chan struct{}), gone: make(chan struct{}),
		now: n.now, paused: n.pauseError, watcher: n.watcher,
	}
	g.leadership = leadership.New(leadership.Config{
		MayStand: mayStand, AwaitCampaign: cfg.AwaitCampaign,
		Margin: cfg.StopMargin, Lease: cfg.Timing.Lease,
	})
	g.priority.Store(int64(cfg.Priority))
	if mayStand {
		close(g.stood)
	}
	g.tick, g.deadline = timer{g: g, index: -1}, timer{g: g, index: -1}
	return g, nil
}

// enterElection begins to take part in an election. It runs on the driver, or before it.
func (n *Node) enterElection(g *group) {
	n.groups[g.name] = g
	n.ticks.set(&g.tick, elector.Never)
	g.feed(leadership.Tick{}) // a lone voter that awaits its campaign is not to stand at once
	n.stepRequests(g)
	n.step(g, elector.Start{
		Term: g.terms.Entered, Reserved: g.terms.Reserved, Min: n.cfg.MinTerm,
		Led: n.enterPaused(g),
	})
	for _, peer := range slices.Sorted(maps.Keys(n.up)) {
		n.step(g, elector.LinkUp{Peer: peer})
	}
	if g.inTurn && n.roundTrip != 0 {
		n.step(g, elector.Measured{RoundTrip: n.roundTrip})
	}
}

// leaveElection follows the end of an election on this node.
func (n *Node) leaveElection(g *group) {
	g.mu.Lock()
	state, holder, dropped := g.leadership.State(), g.holder, g.dropped
	g.mu.Unlock()
	if state.Phase.Working() {
		n.cutWork = append(slices.DeleteFunc(n.cutWork, (*Leadership).over), holder)
	}
	close(g.gone)
	if dropped {
		delete(n.groups, g.name)
		n.ticks.remove(&g.tick)
		n.persister.close(g.name)
		n.closed[g.name] = g
		n.forgetReleased()
	}
}

// forgetReleased forgets the elections that were closed and whose work has been released.
func (n *Node) forgetReleased() {
	maps.DeleteFunc(n.closed, func(_ string, g *group) bool {
		return g.state().Phase == leadership.Idle
	})
}

// leading reports whether the lease is valid at now. It is safe for concurrent use.
func (g *group) leading(now elector.Time) bool { return now < elector.Time(g.leaseEnd.Load()) }

// state is where this node's leadership of the election stands.
func (g *group) state() leadership.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leadership.State()
}

// publish lets everybody on this node know how the last step left the lease.
func (g *group) publish(e *elector.Effects) error {
	lease, handover := g.elector.Lease(), g.elector.Handover()
	if lease.Term == 0 && g.leadTerm == 0 {
		return nil // as before: most steps are a follower's
	}
	var err error
	if lease.Term != g.leadTerm {
		g.leadTerm, g.issued = lease.Term, lsn.LSN{Term: lease.Term}
		if lease.Term == 0 {
			g.sequencer.End()
		} else {
			err = g.sequencer.Begin(lease.Term)
		}
	}
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if lease.Term == 0 {
		g.advance(now, leadership.Lost{Why: lossReason(e)})
		return err
	}
	g.advance(now, leadership.Lease{
		Term: lease.Term, End: lease.End,
		Handover: handover != (elector.Handover{}), Pending: len(g.requests) > 0,
	})
	if e.StopWork {
		g.advance(now, leadership.StopWork{By: handover.End, Why: handover.Why})
	}
	return err
}

// lossReason is why a step ended this node's leadership.
func lossReason(e *elector.Effects) elector.Reason {
	for _, t := range e.Transitions {
		if t.From == elector.Leader && t.To != elector.Leader {
			return t.Reason
		}
	}
	return elector.LeaseExpired
}

// feed is advance for those who do not hold the lock.
func (g *group) feed(in leadership.Input) leadership.Effects {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.advance(now, in)
}

// advance steps the machine of the leaderships, and does at once what is about
// the work: a driver that is held up makes nobody late. What is for the elector waits for
// the driver. It runs under the lock; the caller reads the clock before it takes the lock,
// because the clock of a test may block.
func (g *group) advance(now elector.Time, in leadership.Input) leadership.Effects {
	e := g.leadership.Step(now, in)
	s := g.leadership.State()
	g.leaseEnd.Store(int64(s.LeaseEnd))
	for _, in := range e.Requests {
		g.request(in)
	}
	g.watcher.arm(&g.deadline, e.Wake)
	l := g.holder
	if l == nil {
		return e
	}
	if e.Overdue {
		g.overdue.Store(l)
	}
	l.apply(&e, &s)
	if s.ID != l.id {
		g.holder = nil
	}
	return e
}

// request asks something of the machine. What may be asked for ever while the driver hangs
// replaces what was asked before it: only the newest counts. It runs under the lock.
func (g *group) request(in elector.Input) {
	switch in.(type) {
	case elector.Prefer, elector.Eligible, elector.Resign, elector.Tick:
		g.requests = slices.DeleteFunc(g.requests, func(old elector.Input) bool {
			return reflect.TypeOf(old) == reflect.TypeOf(in)
		})
	}
	g.requests = append(g.requests, in)
}

// nextRequest takes what the leaderships ask of the machine next.
func (g *group) nextRequest() (elector.Input, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.requests) == 0 {
		g.requests = nil
		return nil, false
	}
	in := g.requests[0]
	g.requests = g.requests[1:]
	return in, true
}

// close ends the election on this node, for the given reason. It reports whether guarded
// work goes on although nothing is handed over.
func (g *group) close(why error, abrupt bool) (cut bool) {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == nil {
		g.ended = why
	}
	s := g.leadership.State()
	g.advance(now, leadership.Close{Abrupt: abrupt})
	return abrupt && s.Phase.Working() && s.Term != 0
}

// workEnded is about work of this election that ended by itself.
func (g *group) workEnded() workEnds {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.workEnds
}

// whyEnded is nil while the election is open on this node.
func (g *group) whyEnded() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended
}

// refused is the error for a campaign that fails. It runs under the lock.
func (g *group) refused(r leadership.Refusal) error {
	switch r {
	case leadership.Busy:
		return ErrCampaigning
	case leadership.NotCandidate:
		return ErrNotCandidate
	case leadership.Resigned:
		return ErrResigned
	case leadership.Closed:
		return g.ended
	}
	return fmt.Errorf("refused (%s)", r)
}

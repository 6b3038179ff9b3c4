package loop

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/cluster/internal/measure"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Election is one election of a node, as goroutines other than the driver's use it. It is safe for
// concurrent use.
type Election struct {
	guarded.Machine

	Name      string
	Config    *elector.Config // without the priority; elections of one configuration share it
	Priority  int             // as configured
	Sequencer lsn.Sequencer
	Gone      signal // this node takes no part in it any more
	Stood     signal // this node is a candidate, or was one

	common     *common
	recorded   atomic.Pointer[Recorded]
	succession atomic.Pointer[Succession]

	workEnd atomic.Pointer[WorkEnd]
	g       *group // for the driver only

	fitness   sync.Mutex  // guards the next three fields
	unfit     *[2]string  // why this node is not fit, by Judge; "" if it is; nil: it is
	voter     bool        // this node is one of the voters, as far as it knows
	candidate bool        // it is to stand, whenever it is a voter
	waits     bool        // it is in the list waiting, whose lock guards this field
	dropped   atomic.Bool // the driver forgets it once it has ended
	quiet     atomic.Bool // the driver wants to know of the next LSN that is issued
}

// WorkEnd tells of guarded work that ended by itself. It is immutable.
type WorkEnd struct {
	Count uint64       // how often that happened
	Err   string       // the newest error; "" for none
	Rest  elector.Time // when the newest rest ends
}

// group is the part of an election that only the driver may touch.
type group struct {
	*Election
	*rare // nothingRare, or memory of its own: see own

	machine    *elector.Machine
	durable    *store.Durable        // on disk when it was opened; nil once it has been entered
	tick       guarded.Timer[*group] // when the machine wants its next tick
	guest      guest
	class      *class
	told       int          // how much of Driver.news it was told
	session    *session     // in whose followed set it is; nil if in none
	pairTerm   lsn.Term     // of the leadership for which it is there ...
	observes   bool         // ... and that this node has no vote
	carried    bool         // beats speak for the leader
	inLine     bool         // it waits for those of others
	learns     bool         // it is being told what is new
	heard      elector.Time // the newest beat that the machine knows
	acks       uint64       // how many of Driver.acks the machine knows
	lease      *lease       // that it shares; nil if it does not lead, or is not quiet
	leaseAt    int32        // its place there
	loudAt     int32        // its place in Driver.loud, from 1; 0: it is not there
	putOff     elector.Time // the tick that HeldUp has put off
	leadTerm   lsn.Term     // the term that this node leads in; 0 if it does not lead
	issued     uint64       // counter of the newest issued LSN of that term that the machine knows
	since      int64        // time of the newest transition, in Unix nanoseconds; 0 before the first
	leaderMeta string       // the Meta of the leader
	measure    measure.Election
}

// rare is what few groups need at a time. All others share nothingRare.
type rare struct {
	drawnBy   elector.NodeID              // the leader, if it drew this node from another; see draws
	silences  map[elector.NodeID]silences // by voter
	changes   []*change                   // of voters, that wait; the first one is under way
	writes    []*write                    // values that wait to be written
	writing   *write                      // the newest that was written, until its fate is known
	newest    lsn.LSN                     // of the record that was accepted last
	values    map[[32]byte][]byte         // of the accepted and the committed record, by hash
	offers    map[elector.NodeID]*offering
	confirms  confirms
	handovers []chan bool // of the callers that wait; gets whether this node leads
}

// nothingRare is zero for ever.
var nothingRare = &rare{}

// own makes the memory of what is rare, before any of it is written.
func (g *group) own() *rare {
	if g.rare == nothingRare {
		g.rare = &rare{}
	}
	return g.rare
}

// trim gives that memory back once it is not needed.
func (g *group) trim() {
	if r := g.rare; r != nothingRare && r.drawnBy == "" && r.silences == nil && !g.busy() &&
		r.writing == nil && r.newest == (lsn.LSN{}) && r.values == nil && r.offers == nil &&
		len(r.confirms.asked) == 0 {
		g.rare = nothingRare
	}
}

// Setup says how a node takes part in an election.
type Setup struct {
	Elector       elector.Config
	AwaitCampaign bool          // stands only after the first Campaign
	StopMargin    time.Duration // how long before the end of the lease work must stop
}

// newElection returns an election that is still to be given what is durable, and to be entered.
func (l *common) newElection(name string, s Setup) (*Election, error) {
	class, err := l.classOf(s.Elector)
	if err != nil {
		return nil, err
	}
	machine := class.machine.Another(s.Elector.Priority)
	e := &Election{
		Name: name, Config: &class.Config, Priority: s.Elector.Priority, common: l,
	}
	e.voter, e.candidate = machine.MayVote(), !s.Elector.NotCandidate
	mayStand := e.voter && e.candidate
	if mayStand {
		e.Stood.happen()
	}
	e.Init(leadership.Config{
		MayStand: mayStand, AwaitCampaign: s.AwaitCampaign,
		Priority: e.Priority, Margin: s.StopMargin, Lease: e.Config.Timing.Lease,
	}, l.watcher, e.ask)
	e.g = &group{
		Election: e, rare: nothingRare, class: class, machine: machine,
		measure: measure.Election{Lease: e.Config.Timing.Lease},
	}
	e.g.tick.Owner = e.g
	return e, nil
}

// NextLSN issues an LSN, as Sequencer.Next does.
func (e *Election) NextLSN() (lsn.LSN, error) {
	n, err := e.Sequencer.Next()
	if err == nil && e.quiet.Load() && e.quiet.CompareAndSwap(true, false) {
		e.ask()
	}
	return n, err
}

// ask tells the driver that there are requests.
func (e *Election) ask() { e.common.waiting.add(e) }

// Leading reports whether the lease is valid at this moment.
func (e *Election) Leading() bool { return e.common.Now() < e.LeaseEnd() }

// promise is how long a promise to a leader binds.
func (e *Election) promise() time.Duration { return e.Config.Timing.Promise() }

// IsVoter reports whether this node is one of the voters, as far as it knows.
func (e *Election) IsVoter() bool {
	e.fitness.Lock()
	defer e.fitness.Unlock()
	return e.voter
}

// SetCandidate says whether this node is to stand whenever it is a voter. It returns whether it was
// to stand before, or why the election has ended.
func (e *Election) SetCandidate(candidate bool) (before bool, err error) {
	e.fitness.Lock()
	defer e.fitness.Unlock()
	e.candidate = candidate
	return e.stand()
}

// setVoter says whether this node is one of the voters.
func (e *Election) setVoter(voter bool) {
	e.fitness.Lock()
	defer e.fitness.Unlock()
	if e.voter != voter {
		e.voter = voter
		_, _ = e.stand() // of an election that has ended it does not matter
	}
}

// stand lets the node stand if it is a voter and is to stand. The caller holds the lock.
func (e *Election) stand() (before bool, err error) {
	may := e.voter && e.candidate
	was, err := e.Change(leadership.Candidacy{MayStand: may})
	if may && !was.Stood && err == nil {
		e.Stood.happen()
	}
	return was.MayStand, err
}

// Judge says whether this node is fit to lead. It is if every judge says so.
type Judge int

// The judges.
const (
	Application Judge = iota // of one election
	Probes                   // of the node
)

// SetFit says why this node is not fit, "" if it is. It returns what the judge said before, and why
// the election has ended.
func (e *Election) SetFit(by Judge, unfit string) (before string, err error) {
	e.fitness.Lock()
	defer e.fitness.Unlock()
	var why [2]string
	if e.unfit != nil {
		why = *e.unfit
	}
	before, why[by] = why[by], unfit
	all := slices.DeleteFunc(slices.Clone(why[:]), func(s string) bool { return s == "" })
	if e.unfit = nil; len(all) > 0 {
		e.unfit = &why
	}
	_, err = e.Change(leadership.Fitness{Unfit: strings.Join(all, "; ")})
	return before, err
}

// SetHealth says why the probes find this node not fit, "" if it is: in all elections, also in
// those that are opened later. Where this node leads it counts only after patience: if a fault is
// that of all nodes, the others say so by then, and leadership stays. Handed over at once it could
// meet a node that finds itself unfit a moment later, and nobody would lead. SetHealth waits while
// the driver's inbox is full.
func (l *Loop) SetHealth(unfit string, patience time.Duration) {
	l.health.Store(&unfit)
	l.later(func(d *Driver) { d.tellAll(applyHealth) })
	if unfit != "" {
		time.AfterFunc(patience, func() {
			l.later(func(d *Driver) {
				d.tellAll(func(d *Driver, g *group) {
					if !d.leaving { // it gives up its leaderships anyway
						d.cede(g, applyHealthToLeader)
					}
				})
			})
		})
	}
}

// applyHealth passes on the newest result of the probes, if it counts by now.
func applyHealth(d *Driver, g *group) {
	if *d.health.Load() == "" || g.leadTerm == 0 || g.unfit != nil && g.unfit[Probes] != "" {
		applyHealthToLeader(d, g)
	}
}

func applyHealthToLeader(d *Driver, g *group) {
	unfit := *d.health.Load()
	if unfit != "" && g.leadTerm != 0 {
		d.vacant[g.Name] = d.Now() // it asks its successor first
	}
	_, _ = g.SetFit(Probes, unfit) // of an election that has ended it does not matter
}

// WorkEnded tells of the work that ended by itself last.
func (e *Election) WorkEnded() WorkEnd {
	if w := e.workEnd.Load(); w != nil {
		return *w
	}
	return WorkEnd{}
}

// NoteWorkEnd notes that work ended by itself and that the node now rests for the given time.
// Calls for one election do not overlap, because its work does not.
func (e *Election) NoteWorkEnd(err string, rest time.Duration) {
	e.workEnd.Store(&WorkEnd{e.WorkEnded().Count + 1, err, e.common.Now().Add(rest)})
}

// publish tells the sequencer and the leaderships what the last step did to the lease.
func (g *group) publish(e *elector.Effects) error {
	lease := g.machine.Lease()
	if lease.Term == 0 && g.leadTerm == 0 {
		return nil // nothing has changed: the common case, a step of a follower
	}
	var err error
	if lease.Term != g.leadTerm {
		g.leadTerm, g.issued = lease.Term, 0
		if lease.Term == 0 {
			g.Sequencer.End()
		} else {
			err = g.Sequencer.Begin(lease.Term)
		}
	}
	if lease.Term == 0 {
		g.Feed(leadership.Lost{Why: lossReason(e)})
	} else {
		g.Leads(lease, g.machine.Handover(), e.StopWork)
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

// enter begins this node's part in an election.
func (d *Driver) enter(g *group) {
	d.groups[g.Name] = g
	d.count(g)
	for _, s := range d.sessions { // where it was absent until now
		d.leaveSet(s, g.Name)
	}
	g.told = d.toldBefore + len(d.news)
	d.ticks.Set(&g.tick, elector.Never)
	if unfit := d.health.Load(); unfit != nil {
		_, _ = g.SetFit(Probes, *unfit)
	}
	disk := g.durable
	g.durable = nil
	g.Feed(leadership.Tick{}) // or a lone voter that awaits a campaign would stand at once
	d.stepRequests(g)
	d.step(g, elector.Start{
		Term: disk.Terms.Entered, Reserved: disk.Terms.Reserved, Min: d.MinTerm,
		Led: d.enterPaused(g), Record: disk.Record,
	})
	d.noteVoters(g)
	d.join(g, sortedKeys(d.up))
}

// leave cleans up after the end of an election on this node.
func (d *Driver) leave(g *group) {
	g.Gone.happen()
	d.expect(func(c *coming) bool { return c.g != g })
	if g.dropped.Load() {
		delete(d.groups, g.Name)
		d.discount(g.class)
		d.ticks.Drop(&g.tick)
		d.forgetClosed(g)
		d.closed[g.Name] = g
		d.forgetReleased()
	}
}

// signalHandoverEnd tells those who wait for the end of a handover whether this node led at the
// end.
func (g *group) signalHandoverEnd() {
	if len(g.handovers) > 0 && g.machine.Handover() == (elector.Handover{}) {
		for _, end := range g.handovers {
			end <- g.leadTerm != 0
		}
		g.handovers = nil
	}
}

// forgetReleased forgets the elections that were closed and whose work has been released.
func (d *Driver) forgetReleased() {
	maps.DeleteFunc(d.closed, func(_ string, g *group) bool {
		return g.State().Phase == leadership.Idle
	})
}

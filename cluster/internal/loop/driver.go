package loop

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/base/limit"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Driver is the state that only the driver's goroutine may touch.
type Driver struct {
	*common
	lobby

	Mesh    Mesh
	groups  map[string]*group // open elections, by name
	opening map[string]bool   // names of elections that are being opened
	closed  map[string]*group // closed elections whose work has not been released
	ticks   guarded.Queue[*group]
	alarms  guarded.Queue[ringer] // of sessions, detectors and leases

	sessions   map[elector.NodeID]*session // of links to builds that know pairs
	entered    map[*class]int              // how many elections of each are open
	led        map[*class]int              // how many leaderships this node has of each
	attempts   map[*group]elector.Time     // the elections that try to get a leader, since then ...
	atOnce     atOnce                      // ... of so many that may
	line       []*group                    // wait for fewer
	leases     []*lease                    // of quiet leaderships; few
	loud       []*group                    // lead, each with a lease of its own: see noteLoud
	acks       uint64                      // counts the acknowledged beats that count
	backing    []elector.Backing           // for owed
	news       []told                      // what not all elections were told yet
	sweep      []*group                    // those that may not have been told
	sweepTells int                         // so many of the news
	toldBefore int
	greetings  turns
	greeted    map[*group]elector.Time // since then, and not quiet yet
	cessions   turns
	vacant     map[string]elector.Time // given up then, and no successor was heard to lead yet

	up         map[elector.NodeID]*netmesh.PeerInfo // those to which there is a link
	unentitled map[elector.NodeID]bool              // linked peers that act as voters and are none
	processes  map[elector.NodeID]process           // the newest process of each voter
	trips      map[elector.NodeID]time.Duration     // the newest round trips to linked voters
	majority   majority
	coming     []*coming // values that are on their way here
	arriving   arriving
	pullAt     elector.Time            // when pullAll looks next
	full       map[elector.NodeID]bool // to whom no more could be sent in the newest look
	quality    *elector.Links          // of the links from the voters
	anomalies  map[string]Anomaly      // by kind
	logged     limit.Log[anomalyOf]

	savesLed   bool // the disk writes which elections this node led last ...
	ledChanged bool // ... and others have changed since

	leaving bool          // the node is being closed
	rested  time.Duration // the node's age when the driver began to wait for the next event
	awake   elector.Time  // when the driver began with what it does now
	heldAt  elector.Time  // the due time of the tick that held counted last
}

// ordered is that TCP keeps order: a late heartbeat delays those behind it.
const ordered = true

func newDriver(c *common, m Mesh) *Driver {
	d := &Driver{
		common: c, Mesh: m,
		lobby: lobby{ending: map[string]bool{}, shut: map[string]elector.Time{},
			listed: map[absence]bool{}},
		attempts: map[*group]elector.Time{}, atOnce: atOnce{size: narrow},
		greeted: map[*group]elector.Time{}, vacant: map[string]elector.Time{},
		groups: map[string]*group{}, opening: map[string]bool{}, closed: map[string]*group{},
		up: map[elector.NodeID]*netmesh.PeerInfo{}, unentitled: map[elector.NodeID]bool{},
		processes: map[elector.NodeID]process{}, anomalies: map[string]Anomaly{},
		sessions: map[elector.NodeID]*session{}, arriving: arriving{}, full: map[elector.NodeID]bool{},
		entered: map[*class]int{}, led: map[*class]int{},
		quality: elector.NewLinks(c.Voters, ordered), trips: map[elector.NodeID]time.Duration{},
		awake: c.Now(),
	}
	d.newTurns()
	return d
}

// drive owns the elections until quit.
func (l *Loop) drive(d *Driver) {
	defer func() { l.last = d; close(l.ended) }()
	alarm := clock.NewAlarm(d.Hooks.Clock)
	defer alarm.Close()
	var rings elector.Time
	always := make(chan struct{})
	close(always)
	for {
		wait, events := d.UntilTick(), 1
		if wait <= 0 {
			d.awaken()
			wait = d.UntilTick()
			d.Measure.Waits.Observe(-wait.Seconds())
			d.held(-wait)
			d.listenFirst()
			if !d.tick() {
				events = batch
			}
			wait = d.UntilTick()
		}
		d.rested = d.Measure.Age()
		due := d.rested + wait
		var more <-chan struct{}
		// Only before it waits: to set the alarm takes a system call, as to read the clock does.
		if next := d.nextDue(); wait > 0 && next != rings && len(l.inbox) == 0 {
			alarm.Set(time.Duration(next))
			rings = next
		}
		if wait <= 0 || len(d.sweep) > 0 || events > 1 || d.turnsDue() {
			more = always
		}
		select {
		case <-more:
			d.awaken()
			d.listenFirst()
			d.sweepSome()
			d.takeTurns()
		case e := <-l.inbox:
			l.read(d, &e, due, events)
		case <-d.waiting.ready:
			d.awaken()
			d.listenFirst()
			for _, e := range d.waiting.take() {
				d.stepRequests(e.g)
			}
		case <-alarm.Rings(): // the next iteration ticks
			d.awaken()
			rings = 0
		case <-l.quit:
			return
		}
	}
}

// awaken begins what the driver does next.
func (d *Driver) awaken() {
	d.Hooks.Gate()
	d.awake = d.common.Now()
}

// Now is the clock as it was read after the driver took the present event: all steps of that event
// use it. A promise that counts from it outlasts the lease that it backs, because that counts from
// an earlier time of sending.
func (d *Driver) Now() elector.Time { return d.awake }

// batch is how many elections the driver ticks, or tells something, and how many events it reads,
// before it does something else. With a hundred thousand elections, beats would wait for seconds
// otherwise, and leases would end meanwhile.
const batch = 64

// read handles an event, and those that wait behind it, up to most.
func (l *Loop) read(d *Driver, e *event, due time.Duration, most int) {
	for ; most > 0; most-- {
		d.awaken()
		d.taken(e, due)
		d.listenFirst()
		d.handle(e)
		if most == 1 {
			return
		}
		due = math.MaxInt64 // the wait of the tick is counted
		select {
		case *e = <-l.inbox:
		default:
			return
		}
	}
}

func (d *Driver) handle(e *event) {
	if e.do != nil {
		e.do(d)
		return
	}
	d.noteSuccessor(e)
	g := d.groups[e.group]
	if g == nil {
		g = d.invite(e)
	} else {
		g.guest.heard = true
	}
	if g == nil || g.Gone.happened() {
		d.absent(e)
		return
	}
	d.received(g, e)
}

// UntilTick is how long the driver may sleep; not positive if a tick is due.
func (d *Driver) UntilTick() time.Duration {
	at := d.nextDue()
	if at == elector.Never {
		return time.Hour
	}
	return at.Sub(d.Now())
}

// nextDue is when the first tick or alarm is due, a value that has not come is asked for again, or
// the next ones have their turn although others are still at it.
func (d *Driver) nextDue() elector.Time {
	next := min(d.ticks.Next(), d.alarms.Next())
	if len(d.coming) > 0 {
		next = min(next, d.pullAt)
	}
	for _, t := range [...]*turns{&d.greetings, &d.cessions} {
		if len(t.waiting) > 0 {
			next = min(next, t.until())
		}
	}
	return next
}

// stepAll steps every machine with the same input.
func (d *Driver) stepAll(in elector.Input) {
	d.tellAll(func(d *Driver, g *group) { d.step(g, in) })
}

// stepRequests steps a machine with the requests of its leaderships.
func (d *Driver) stepRequests(g *group) {
	d.catchUp(g)
	d.bringUpToDate(g)
	d.tellIssued(g)
	if in, ok := d.next(g); ok {
		d.step(g, in)
	}
}

// next is the next input that a goroutine of the application asks for.
func (d *Driver) next(g *group) (elector.Input, bool) {
	in, ok := g.NextRequest()
	if !ok && len(g.confirms.waiting) > 0 {
		in, ok = d.nextConfirm(g)
	}
	if !ok && len(g.changes) > 0 { // before a value: it is answered before others change it again
		in, ok = d.nextChange(g)
	}
	if !ok && len(g.writes) > 0 {
		return d.nextWrite(g)
	}
	return in, ok
}

// Step steps the machine of an election.
func (d *Driver) Step(e *Election, in elector.Input) { d.step(e.g, in) }

// step steps one machine with an input, and then with the requests of its leaderships until none
// is left. These requests wait for the end of the step that causes them, because the next step
// reuses the buffers of its effects. Before the input come what all elections were told, and what
// beats have brought since the step before.
func (d *Driver) step(g *group, in elector.Input) {
	d.catchUp(g)
	d.bringUpToDate(g)
	for more := true; more; in, more = d.next(g) { // nothing is stepped between a request and its step
		d.stepOnce(g, in)
		d.bringUpToDate(g)
	}
}

// bringUpToDate steps a machine with what beats have brought, and what it must know before any
// other input.
func (d *Driver) bringUpToDate(g *group) {
	for in, ok := d.owed(g); ok; in, ok = d.owed(g) {
		d.stepOnce(g, in)
	}
	d.excuse(g)
	d.measured(g)
}

// stepOnce steps a machine once. A step has these duties, in this order:
//
//  1. Set the next tick.
//  2. Publish the lease and tell guarded work that it must stop. This comes before any message
//     is sent: no other node may learn that this one gave up while it still says that it leads,
//     and no successor may be named before the work knows.
//  3. Report transitions and anomalies, and count them. An anomaly may close a link, which must
//     then carry no further message.
//  4. Request the write of terms and of a record. This comes before the messages are encoded
//     because the disk is slow. The machine itself keeps back the messages that have to wait for
//     the write.
//  5. Send the messages.
//  6. If the machine has stopped, leave the election. The goodbye has been sent by then.
//  7. While elections are paused, keep on disk which of them this node led last.
//  8. Show who is to lead next, and the committed record, and answer who published that.
//  9. Tell those who wait for a proof of leadership, and for the end of a handover.
//  10. Join the followed set of the leader's session, or leave it. Let a leader be quiet to whom
//     nobody has to be told by heartbeats that it leads.
func (d *Driver) stepOnce(g *group, in elector.Input) {
	now, entropy, ledIn, followed := d.Now(), d.Hooks.Entropy(), g.leadTerm, g.machine.Leader()
	d.Recorder.Step(g.Name, g.Election == d.first, g.Config, in)
	g.machine.SetCrowded(d.crowded(g))
	e := g.machine.Step(now, entropy, in)
	if d.Hooks.Stepped != nil {
		d.showStep(g, in, &e)
	}
	if err := g.publish(&e); err != nil {
		d.Fail(err)
		return
	}
	watched := d.watchLease(g)
	if g.tick.Set() { // it was not left
		d.ticks.Set(&g.tick, e.Wake)
	}
	d.report(g, &e, followed)
	d.Measure.Stepped(&g.measure, g.machine, in, &e, now, g.LeaseEnd(), followed)
	if e.Persist != (elector.Terms{}) {
		d.persister.request(g.Name, store.Durable{
			Terms: e.Persist, Record: e.Accept, Value: g.value(e.Accept.Value),
		})
	}
	if e.Accept.LSN != (lsn.LSN{}) {
		d.accepted(g, e.Accept.LSN)
	}
	covered := d.send(g, &e)
	if n := len(e.Transitions); n > 0 && e.Transitions[n-1].To == elector.Dormant {
		d.leave(g)
	}
	if len(e.Transitions) > 0 {
		d.noteLed(g)
	}
	g.noteSuccession()
	g.showRecord(&e)
	g.signalConfirmed()
	g.signalHandoverEnd()
	g.trim()
	joined := slices.Clone(e.Joined) // the next step reuses it
	d.noteLeads(g, ledIn)
	d.noteLoud(g)
	d.noteAttempt(g, now)
	d.pair(g)
	switch {
	case !watched, g.busy() && g.machine.Quiet(): // nobody watches the lease, or a request waits
		d.stepOnce(g, elector.Covered{})
	case covered:
		d.cover(g)
	}
	d.join(g, joined)
}

// send sends the messages of a step. It reports whether a heartbeat among them had to be sent to
// nobody, because beats say what it would say.
func (d *Driver) send(g *group, e *elector.Effects) (covered bool) {
	for i := range e.Messages {
		switch m := &e.Messages[i]; {
		case m.Message.Kind == elector.RecordOffer:
			d.offer(g, m.To, &m.Message)
		case m.Repeats:
			covered = d.heartbeat(g, &m.Message)
		default:
			d.noteCession(g, &m.Message)
			d.Mesh.Send(m.To, g.Name, m.Message)
		}
	}
	return covered
}

// join tells an election that there are links to voters that count from now on.
func (d *Driver) join(g *group, voters []elector.NodeID) {
	for _, voter := range voters {
		if d.up[voter] != nil {
			d.step(g, elector.LinkUp{Peer: voter})
		}
	}
}

// showStep shows a step to a test. It passes copies, because a value that is passed by pointer is
// allocated on the heap in every step.
func (d *Driver) showStep(g *group, in elector.Input, e *elector.Effects) {
	effects := *e
	s := testhook.Step{
		Group: g.Name, In: elector.Tick{}, Effects: &effects,
		State: g.machine.State(), Lease: g.machine.Lease(),
	}
	switch in := in.(type) {
	case elector.Start:
		s.In = in
	case elector.Received:
		s.In = in
	case elector.Died:
		s.In = in
	case elector.Carry:
		if !g.observes { // who observes promises nothing
			s.In = in
		}
	case elector.Persisted:
		s.In = in
	}
	d.Hooks.Stepped(s)
}

// onPersisted runs on the persister's goroutine. One write may be that of very many elections.
func (l *Loop) onPersisted(written groups, err error) {
	if err != nil {
		// The persister ends then. Callers that wait for it must find the failure, so it waits.
		_ = l.Do(context.Background(), func(d *Driver) error { d.Fail(err); return nil })
		return
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(written)), batch) {
		l.later(func(d *Driver) {
			for _, name := range some {
				if g, w := d.groups[name], written[name]; g != nil {
					d.step(g, elector.Persisted{Term: w.Terms.Reserved, Record: w.Record.LSN})
				}
			}
		})
	}
}

// Fail ends this node's part in every election for good: it could not keep a promise any more.
func (d *Driver) Fail(err error) {
	d.Log.Error("this node takes no part any more", "error", err)
	d.end(fmt.Errorf("node %s takes no part any more: %w", d.Node, err))
}

// end ends every election at once.
func (d *Driver) end(why error) {
	if d.why != nil {
		return
	}
	d.why = why
	for _, t := range slices.Clone(d.ticks) {
		t.Owner.Close(why, true)
		d.stepRequests(t.Owner)
	}
	close(d.done)
}

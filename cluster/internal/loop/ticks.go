package loop

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
)

// lateFrom is how late a tick must be to count as held up. Timers are usually late by less.
const lateFrom = time.Millisecond

// listenFirst is called before the driver does something. Detectors and elections whose ticks are
// late, except where this node leads, learn that the driver was held up: they read the messages
// that wait before they give a leader up. Each deadline is put off only once, so an inbox that is
// never empty delays nothing for ever.
func (d *Driver) listenFirst() {
	if d.Now().Sub(d.alarms.Next()) < lateFrom {
		return
	}
	for _, t := range slices.Clone(d.alarms) {
		if w, watches := t.Owner.(*watcher); watches {
			w.listenFirst(d, d.Now())
		}
	}
}

// excuse is listenFirst for one election, before any other input.
func (d *Driver) excuse(g *group) {
	late := d.Now().Sub(g.tick.At)
	if late < lateFrom || !g.tick.Set() || g.tick.At == g.putOff || g.leadTerm != 0 {
		return
	}
	if len(d.line) > 0 && g.machine.IsAboutToStand(d.Now()) { // it waits in line, or has waited
		return
	}
	d.quality.HeldUp(d.Now(), late)
	d.stepOnce(g, elector.HeldUp{For: late})
	g.putOff = g.tick.At
}

// tick steps machines whose ticks are due, a batch at most, and reports whether these were all. A
// leader's machine first learns the newest LSN that the application issued, so that the next
// heartbeat carries it.
func (d *Driver) tick() (all bool) {
	now := d.Now()
	d.ring(now)
	for n := 0; n < batch && d.ticks.Next() <= now; n++ {
		g := d.ticks[0].Owner
		d.tellIssued(g)
		d.step(g, elector.Tick{})
	}
	d.pullAll()
	return d.ticks.Next() > now
}

// ring acts on the alarms of sessions, detectors and leases that are due.
func (d *Driver) ring(now elector.Time) {
	for d.alarms.Next() <= now {
		t := d.alarms[0]
		t.Owner.ring(d, t.At)
	}
}

// endLeases steps the machines of leaders whose leases have ended.
func (d *Driver) endLeases() {
	now := d.Now()
	d.ring(now)
	for _, t := range d.ticks.Due(now) {
		d.endLease(t.Owner, now)
	}
}

// endLease is endLeases for one election; g may be nil.
func (d *Driver) endLease(g *group, now elector.Time) {
	if g != nil && g.leadTerm != 0 && g.machine.Lease().End <= now {
		d.step(g, elector.Tick{})
	}
}

// tellIssued tells a leader's machine the newest LSN that the application issued.
func (d *Driver) tellIssued(g *group) {
	if newest := g.Sequencer.Newest(); newest.Term == g.leadTerm && newest.Counter != g.issued {
		g.issued = newest.Counter
		d.step(g, elector.Issued{LSN: newest})
	}
}

// taken measures how long an event was in the inbox. If a tick was due before, it also measures
// for how long: the event goes first, and its step may do the work of the tick.
func (d *Driver) taken(e *event, due time.Duration) {
	now := d.Measure.Age()
	if e.posted != 0 {
		d.Measure.Waits.Observe((now - e.posted).Seconds())
	}
	if now > due {
		d.Measure.Waits.Observe((now - due).Seconds())
		d.held(now - due)
	}
}

// heldFrom is how late the driver must be for a record: half a heartbeat of the article's timers.
const heldFrom = 250 * time.Millisecond

// held counts and records that the driver is late, as in a process that was stopped. It does so
// once for a tick.
func (d *Driver) held(late time.Duration) {
	next := d.nextDue()
	if next == d.heldAt {
		return
	}
	d.heldAt = next
	usual := time.Duration(elector.Never)
	switch {
	case len(d.ticks) > 0 && next == d.ticks[0].At:
		usual = d.ticks[0].Owner.Config.Timing.HeartbeatBroadcast
	case len(d.alarms) > 0 && next == d.alarms[0].At:
		usual = d.alarms[0].Owner.usual()
	}
	if late >= usual/2 {
		d.Measure.Stalls.Add(1)
	}
	if late >= heldFrom {
		d.Recorder.Record(recording.Record{
			Kind: recording.Held, Seconds: late.Seconds(), AtMost: (d.Measure.Age() - d.rested).Seconds(),
		})
	}
}

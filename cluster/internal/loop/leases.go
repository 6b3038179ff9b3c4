package loop

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
)

// lease is the lease of all quiet leaderships of one class and the same voters that the same
// sessions back: it needs one timer and one calculation for an acknowledged beat, however many
// they are. It ends no later than each of these leaderships' machines would say, if it knew of the
// beats.
type lease struct {
	class   *class
	voters  []elector.NodeID
	backers []*session // of those, in their order
	members []*group   // g.leaseAt is a member's place
	end     elector.Time
	shared  *guarded.Shared // shows end to other goroutines
	timer   *guarded.Timer[ringer]
}

// watchLease lets a quiet leadership share its lease, and one that is not quiet any more have its
// own. It reports whether somebody watches the lease.
func (d *Driver) watchLease(g *group) bool {
	quiet := g.machine.Quiet()
	if !quiet && g.lease != nil {
		g.lease.remove(d, g)
	}
	return !quiet || g.lease != nil || g.machine.Lease().End == elector.Never || d.share(g)
}

// noteLoud keeps the leaders that do not share a lease. They learn of acknowledged beats at once:
// guarded work is told to stop well before the end of the lease that is known.
func (d *Driver) noteLoud(g *group) {
	ends := g.machine.Lease().End != elector.Never
	switch loud := g.leadTerm != 0 && g.lease == nil && ends && g.tick.Set(); {
	case loud && g.loudAt == 0:
		d.loud = append(d.loud, g)
		g.loudAt = int32(len(d.loud))
	case !loud && g.loudAt != 0:
		d.noteQuiet(g)
		last := len(d.loud) - 1
		d.loud[g.loudAt-1], d.loud[last].loudAt = d.loud[last], g.loudAt
		d.loud[last] = nil
		d.loud, g.loudAt = d.loud[:last], 0
	}
}

// share reports whether a leadership that is quiet shares a lease from now on.
func (d *Driver) share(g *group) bool {
	var backers []*session
	voters := g.machine.Electorate()
	for _, voter := range voters {
		s := d.sessions[voter]
		if s != nil && s.leads.Supports(g.Name, g.leadTerm) && g.machine.Backs(voter, s.identity) {
			backers = append(backers, s)
		}
	}
	l, now := d.leaseOf(g.class, voters, backers), d.Now()
	if l == nil {
		l = &lease{class: g.class, voters: voters, backers: backers, shared: &guarded.Shared{}}
		l.timer = &guarded.Timer[ringer]{Owner: l}
		l.end = l.backed(g)
		l.shared.Set(l.end)
		if l.end > now {
			d.leases = append(d.leases, l)
			d.alarms.Set(l.timer, l.end)
		}
	}
	if l.end <= now {
		return false
	}
	g.lease, g.leaseAt = l, int32(len(l.members))
	l.members = append(l.members, g)
	g.Share(l.shared)
	return true
}

func (d *Driver) leaseOf(c *class, voters []elector.NodeID, backers []*session) *lease {
	for _, l := range d.leases {
		if l.class == c && slices.Equal(l.backers, backers) && slices.Equal(l.voters, voters) {
			return l
		}
	}
	return nil
}

// backed is the end of the lease that the newest acknowledged beats give a member.
func (l *lease) backed(member *group) elector.Time {
	acks := make([]elector.Time, len(l.voters))
	for i, voter := range l.voters {
		for _, s := range l.backers {
			if s.peer == voter {
				acks[i] = s.leads.Counted()
			}
		}
	}
	return member.machine.LeaseFrom(acks)
}

// renew lets the lease grow. One that has ended does not come back.
func (l *lease) renew(d *Driver) {
	// The driver may have been held up since Now, and others may have seen the end.
	if left := l.end.Sub(d.common.Now()); left > 0 && len(l.members) > 0 {
		if end := l.backed(l.members[0]); end > l.end {
			d.Measure.Renewals.Observe(float64(left) / float64(l.class.Timing.Lease))
			l.end = end
			l.shared.Set(end)
			l.show(d)
		}
	}
}

// show shows a test the lease of each member, although the machines learn of it later.
func (l *lease) show(d *Driver) {
	for i := 0; d.Hooks.Stepped != nil && i < len(l.members); i++ {
		g := l.members[i]
		state := g.machine.State()
		state.Now = d.Now()
		state.Leader.LeaseEnd = max(state.Leader.LeaseEnd, l.end)
		d.Hooks.Stepped(testhook.Step{
			Group: g.Name, In: elector.Tick{}, Effects: &elector.Effects{}, State: state,
			Lease: elector.Lease{Term: g.leadTerm, End: state.Leader.LeaseEnd},
		})
	}
}

// ring lets each member look at its own lease, if the shared one has ended.
func (l *lease) ring(d *Driver, _ elector.Time) {
	now := d.Now()
	if now < l.end {
		d.alarms.Set(l.timer, l.end)
		return
	}
	for len(l.members) > 0 {
		g := l.members[len(l.members)-1]
		l.remove(d, g)
		d.ticks.Set(&g.tick, now)
	}
}

func (l *lease) usual() time.Duration { return l.class.Timing.HeartbeatBroadcast }

// remove lets a member have a lease of its own. Its machine must know by then what beats gave it.
func (l *lease) remove(d *Driver, g *group) {
	last := l.members[len(l.members)-1]
	l.members[g.leaseAt], last.leaseAt = last, g.leaseAt
	l.members[len(l.members)-1] = nil
	l.members = l.members[:len(l.members)-1]
	g.lease = nil
	g.Share(nil)
	if len(l.members) == 0 {
		d.alarms.Drop(l.timer)
		d.leases = slices.DeleteFunc(d.leases, func(o *lease) bool { return o == l })
	}
}

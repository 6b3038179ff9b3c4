package loop

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// atOnce is how many elections do something at a time: §16.10. When a node dies that led very many,
// all of them want to elect. Their messages would wait for each other until rounds time out or
// leases end, and no attempt would succeed. Nodes, disks and links differ, so more may do it while
// it takes little of a lease, and fewer when it takes long.
type atOnce struct {
	size   int
	shrunk elector.Time // when it shrank last
}

// The bounds of that number.
const (
	narrow = 64
	wide   = 1024
)

// took notes how long one of them took that ends now.
func (w *atOnce) took(long, lease time.Duration, now elector.Time) {
	switch {
	case long < lease/4 && w.size < wide:
		w.size++
	case long > lease/2 && now >= w.shrunk.Add(lease/2):
		w.size, w.shrunk = max(w.size/2, narrow), now
	}
}

// noteAttempt counts the attempts to get a leader after a step at now: a round or a ballot is open,
// or not all know the leader yet. An election that could not stand waits in line, and the next one
// in line stands if it can.
func (d *Driver) noteAttempt(g *group, now elector.Time) {
	attempts := g.machine.Attempts() && (g.leadTerm == 0 || d.waitsForMirrors(g))
	since, did := d.attempts[g]
	switch {
	case attempts && !did && g.leadTerm != 0: // beats spoke for it for a moment
		d.attempts[g] = 0
	case attempts && !did:
		d.attempts[g] = now
	case !attempts && did:
		delete(d.attempts, g)
		d.tookAttempt(g, since, now)
	}
	if !g.inLine && g.machine.IsAboutToStand(now) {
		g.inLine = true
		d.line = append(d.line, g)
	}
	for len(d.attempts) < d.atOnce.size && len(d.line) > 0 {
		next := d.line[0]
		d.line[0] = nil
		d.line = d.line[1:]
		next.inLine = false
		if next.tick.Set() && next.machine.IsAboutToStand(now) {
			// It attempts with its tick, before those that are late, or lets the next one follow.
			d.ticks.Set(&next.tick, min(now, d.ticks.Next()))
			return
		}
	}
}

// waitsForMirrors reports whether beats are still to speak for a leader to a member. That excludes
// members whose build knows no pairs, and those that hang, which keep their links: another member
// has answered a beat that was sent an inactivity interval later.
func (d *Driver) waitsForMirrors(g *group) bool {
	newest := elector.Time(0)
	for _, s := range d.sessions {
		newest = max(newest, s.leads.Answered())
	}
	hung := newest - elector.Time(g.Config.Timing.Inactivity())
	for _, s := range d.sessions {
		if answered := s.leads.Answered(); !s.tells(g, g.leadTerm) && (answered == 0 || answered > hung) {
			return true
		}
	}
	return false
}

// crowded reports whether an election may not stand because others try to get a leader.
func (d *Driver) crowded(g *group) bool {
	if len(d.attempts) < d.atOnce.size {
		return false
	}
	_, attempts := d.attempts[g]
	return !attempts
}

// tookAttempt notes an attempt that has ended, while others wait for it.
func (d *Driver) tookAttempt(g *group, since, now elector.Time) {
	long, lease := now.Sub(since), g.Config.Timing.Lease
	if g.leadTerm == 0 { // one that fails is not fast
		long = max(long, lease/4)
	}
	if len(d.line) > 0 && since != 0 {
		d.atOnce.took(long, lease, now)
	}
}

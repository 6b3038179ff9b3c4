package loop

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
)

// seen is the newest step of an actor in an election, as its driver showed it.
type seen struct {
	elector.State

	at time.Time
}

// see keeps a step, also one that a beat stands for. It is called with mu held.
func (a *actor) see(step *testhook.Step) {
	a.seen[step.Group] = seen{step.State, time.Now()}
}

// until is when a moment on an actor's clock is.
func (a *actor) until(moment elector.Time) time.Time {
	left := moment.Sub(a.Now())
	return time.Now().Add(left - left*time.Duration(a.clock.ppm)/1e6)
}

// binds looks whether promises bind so many to a leader, until its lease ends, that no quorum of
// others is left: of the voters of its newest record, or of the committed one. The messages that
// make it so may be on their way between a driver and the test, but not for two looks. It is called
// with mu held.
func (s *stage) binds(a *actor, e *Election) {
	end, leads := e.LeaseEnd(), a.seen[e.Name].Record
	if end == elector.Never || !e.Leading() {
		return
	}
	ends, why := a.until(end), ""
	for _, r := range []elector.Record{leads.Accepted, leads.Shown} {
		voters, bound, text := s.ids, 0, ""
		if r.Voters != (elector.Roster{}) {
			voters = nil
			for _, v := range r.Voters.Voters() {
				voters = append(voters, v.Node)
			}
		}
		for _, o := range s.actors {
			now, stepped := o.seen[e.Name]
			for _, id := range voters {
				if id != o.id {
					continue
				}
				until := now.EmbargoEnd
				if now.Promise.To == a.id {
					until = max(until, now.Promise.Until)
				}
				if o == a || !o.up || o.process.Killed() || o.parts[e.Name] == nil || !stepped ||
					!o.until(until).Add(time.Microsecond).Before(ends) {
					bound++
				}
				text += fmt.Sprintf(" %s to %s for %s", o.id, now.Promise.To, time.Until(o.until(until)))
			}
		}
		if bound > len(voters)-elector.Majority(len(voters)) {
			s.unbound[e] = 0
			return
		}
		why += fmt.Sprintf("; of %v %d are bound:%s", voters, bound, text)
	}
	if s.unbound[e]++; s.unbound[e] > 1 {
		s.breaks("%s leads %s for %s%s", a.id, e.Name, time.Until(ends), why)
	}
}

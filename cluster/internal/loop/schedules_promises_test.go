package loop

import (
	"fmt"
	"slices"
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
	a.seen[step.Group] = &seen{step.State, time.Now()}
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
	end, leads := e.LeaseEnd(), a.seen[e.Name]
	if leads == nil || end == elector.Never || !e.Leading() {
		return
	}
	ends := a.until(end)
	for _, r := range []*elector.Record{&leads.Record.Accepted, &leads.Record.Shown} {
		voters, bound := s.ids, 0
		if r.Voters != (elector.Roster{}) {
			voters = nil
			for _, v := range r.Voters.Voters() {
				voters = append(voters, v.Node)
			}
		}
		for _, o := range s.actors {
			if slices.Contains(voters, o.id) && (o == a || o.bound(a.id, e.Name, ends)) {
				bound++
			}
		}
		if bound > len(voters)-elector.Majority(len(voters)) {
			s.unbound[e] = 0
			return
		}
	}
	if s.unbound[e]++; s.unbound[e] > 1 {
		s.breaks("%s leads %s for %s%s", a.id, e.Name, time.Until(ends), s.promises(e.Name))
	}
}

// bound reports whether an actor votes for nobody else than to in an election until then: it has
// promised that, has just started, or is to start.
func (a *actor) bound(to elector.NodeID, election string, then time.Time) bool {
	now := a.seen[election]
	if !a.up || a.process.Killed() || a.parts[election] == nil || now == nil {
		return true
	}
	until := now.EmbargoEnd
	if now.Promise.To == to {
		until = max(until, now.Promise.Until)
	}
	return !a.until(until).Add(time.Microsecond).Before(then)
}

// promises lists who has promised what in an election.
func (s *stage) promises(election string) (text string) {
	for _, a := range s.actors {
		if now := a.seen[election]; a.up && now != nil {
			text += fmt.Sprintf("; %s is bound to %q for %s, voters %s", a.id, now.Promise.To,
				time.Until(a.until(now.Promise.Until)), names(now.Record.Accepted.Voters))
		}
	}
	return text
}

package loop

import "github.com/bmqelect/bmqelect/elector"

// Succession says whether this node is to lead next, or leads. It is immutable.
type Succession struct {
	Named    bool // the leader, or the one before, names this node as its successor
	Leads    bool
	HeirCold bool // it leads, and its successor is not prepared
	changed  signal
}

// Changed is closed when one of them has changed.
func (s *Succession) Changed() <-chan struct{} { return s.changed.Done() }

// Succession returns the newest.
func (e *Election) Succession() *Succession {
	return lazily(&e.succession, func() *Succession { return &Succession{} })
}

// noteSuccession shows a Succession that a step has changed.
func (g *group) noteSuccession() {
	named, leads, cold := g.machine.Heir() == g.common.Node, g.leadTerm != 0, g.machine.HeirIsCold()
	s := g.succession.Load()
	if s == nil && !named && !leads && !cold ||
		s != nil && s.Named == named && s.Leads == leads && s.HeirCold == cold {
		return
	}
	old := g.Succession() // somebody may wait for its end
	g.succession.Store(&Succession{Named: named, Leads: leads, HeirCold: cold})
	old.changed.happen()
}

// SetPrepared says whether the application is prepared to lead at once. It does not wait for the
// driver unless the inbox is full.
func (l *Loop) SetPrepared(e *Election, ready bool) {
	l.later(func(d *Driver) {
		if e.Ended() == nil {
			d.step(e.g, elector.Prepared{Ready: ready})
		}
	})
}

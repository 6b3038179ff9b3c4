package loop

import "github.com/bmqelect/bmqelect/elector"

// Succession says whether this node is to lead next, or leads. It is immutable.
type Succession struct {
	Named    bool // the leader, or the one before, names this node as its successor
	Leads    bool
	HeirCold bool // it leads, and its successor is not prepared
	changed  chan struct{}
}

// Changed is closed when one of them has changed.
func (s *Succession) Changed() <-chan struct{} { return s.changed }

// Succession returns the newest.
func (e *Election) Succession() *Succession {
	first := func() *Succession { return &Succession{changed: make(chan struct{})} }
	return lazily(&e.succession, first)
}

// noteSuccession shows a Succession that a step has changed.
func (g *group) noteSuccession() {
	var was Succession
	if s := g.succession.Load(); s != nil {
		was = *s
	}
	now := Succession{g.machine.Heir() == g.common.Node, g.leadTerm != 0, g.machine.HeirIsCold(),
		was.changed}
	if now != was {
		old := g.Succession() // somebody may wait for its end
		g.succession.Store(&Succession{now.Named, now.Leads, now.HeirCold, make(chan struct{})})
		close(old.changed)
	}
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

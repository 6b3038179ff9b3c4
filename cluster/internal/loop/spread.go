package loop

import "slices"

// told is something that all elections are told, each before its next step: see Driver.tellAll.
type told func(d *Driver, g *group)

// tellAll tells every election what happened. Each one learns it before anything later, since step
// catches up first; those that nothing else steps are told in batches, so that a hundred thousand
// elections do not hold up the beats of others. Those that this node leads come first, as the
// promises to them may be about to end. What happens meanwhile those learn next time that were told
// before: if very much happens, nobody waits for more than two times.
func (d *Driver) tellAll(what told) {
	d.news = append(d.news, what)
	if len(d.sweep) == 0 {
		d.beginSweep()
	}
	d.sweepSome()
}

// beginSweep lists the elections that are told all that is new now.
func (d *Driver) beginSweep() {
	d.sweepTells = len(d.news)
	d.sweep = d.sweep[:0]
	for _, leads := range []bool{true, false} {
		for _, t := range d.ticks {
			if (t.Owner.leadTerm != 0) == leads {
				d.sweep = append(d.sweep, t.Owner)
			}
		}
	}
}

// sweepSome tells the next elections what is new to them.
func (d *Driver) sweepSome() {
	n := min(len(d.sweep), batch)
	for _, g := range d.sweep[:n] {
		d.catchUp(g)
	}
	if d.sweep = d.sweep[n:]; len(d.sweep) > 0 {
		return
	}
	d.toldBefore += d.sweepTells
	if d.news = slices.Delete(d.news, 0, d.sweepTells); len(d.news) > 0 {
		d.beginSweep()
	} else {
		d.news, d.sweep, d.sweepTells = nil, nil, 0
	}
}

// catchUp tells an election what it was not told yet, in order: a step with the older news is not
// preceded by the next ones.
func (d *Driver) catchUp(g *group) {
	if g.learns {
		return
	}
	g.learns = true
	g.told = max(g.told, d.toldBefore) // an election that has ended was told nothing
	for g.told < d.toldBefore+len(d.news) {
		what := d.news[g.told-d.toldBefore]
		g.told++
		what(d, g)
	}
	g.learns = false
}

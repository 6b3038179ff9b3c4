package loop

// told is something that all elections are told, each before its next step: see Driver.tellAll.
type told func(d *Driver, g *group)

// tellAll tells every election what happened. Each one learns it before anything later, since step
// catches up first; those that nothing else steps are told in batches, so that a hundred thousand
// elections do not hold up the beats of others. Those that this node leads come first, as the
// promises to them may be about to end.
func (d *Driver) tellAll(what told) {
	d.news = append(d.news, what)
	d.sweep = d.sweep[:0]
	for _, leads := range []bool{true, false} {
		for _, t := range d.ticks {
			if (t.Owner.leadTerm != 0) == leads {
				d.sweep = append(d.sweep, t.Owner)
			}
		}
	}
	d.sweepSome()
}

// sweepSome tells the next elections what is new to them.
func (d *Driver) sweepSome() {
	n := min(len(d.sweep), batch)
	for _, g := range d.sweep[:n] {
		d.catchUp(g)
	}
	d.sweep = d.sweep[n:]
	if len(d.sweep) == 0 { // all know it all
		d.toldBefore += len(d.news)
		d.news, d.sweep = nil, nil
	}
}

// catchUp tells an election what it was not told yet, in order.
func (d *Driver) catchUp(g *group) {
	g.told = max(g.told, d.toldBefore) // an election that has ended was told nothing
	for g.told < d.toldBefore+len(d.news) {
		what := d.news[g.told-d.toldBefore]
		g.told++
		what(d, g)
	}
}

package loop

import "github.com/bmqelect/bmqelect/elector"

// attemptsAtOnce, §16.10, is how many elections of this node try to get a leader at a time: a
// round or a ballot is open. When a node dies that led very many, all of them want to. Their
// messages would wait for each other until rounds time out, and no attempt would succeed.
const attemptsAtOnce = 256

// waitsInLine reports whether an election is to wait until others have been decided, although it is
// its turn to stand.
func (d *Driver) waitsInLine(g *group) bool {
	if d.attempts < attemptsAtOnce || !g.machine.IsAboutToStand(d.Now()) {
		return false
	}
	if !g.inLine {
		g.inLine = true
		d.line = append(d.line, g)
	}
	d.ticks.Set(g.tick, elector.Never)
	return true
}

// noteAttempt counts the attempts after a step, and lets the next in line stand.
func (d *Driver) noteAttempt(g *group) {
	switch now := g.machine.Attempts(); {
	case now && !g.attempts:
		d.attempts++
	case !now && g.attempts:
		d.attempts--
	}
	g.attempts = g.machine.Attempts()
	for d.attempts < attemptsAtOnce && len(d.line) > 0 {
		next := d.line[0]
		d.line[0] = nil
		d.line = d.line[1:]
		next.inLine = false
		if next.tick.Set() && next.machine.IsAboutToStand(d.Now()) {
			d.ticks.Set(next.tick, d.Now())
			return // it attempts with its tick, or lets the next one follow
		}
	}
}

package loop

import "github.com/bmqelect/bmqelect/elector"

// attemptsAtOnce, §16.10, is how many elections of this node try to get a leader at a time: a
// round or a ballot is open, or its leader is not known to all yet. When a node dies that led very
// many, all of them want to. Their messages would wait for each other until rounds time out, and
// no attempt would succeed.
const attemptsAtOnce = 256

// noteAttempt counts the attempts after a step at now. An election that could not stand waits in
// line, and the next one in line stands if it can.
func (d *Driver) noteAttempt(g *group, now elector.Time) {
	switch attempts := g.machine.Attempts(); {
	case attempts && !g.attempts:
		g.attempts = true
		d.attempts++
	case !attempts && g.attempts:
		g.attempts = false
		d.attempts--
	}
	if !g.inLine && g.machine.IsAboutToStand(now) {
		g.inLine = true
		d.line = append(d.line, g)
	}
	for d.attempts < attemptsAtOnce && len(d.line) > 0 {
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

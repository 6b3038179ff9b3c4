package loop

import "github.com/bmqelect/bmqelect/elector"

// greeting is a leader that is still to tell a peer that it leads.
type greeting struct {
	g    *group
	peer elector.NodeID
}

// mostLoud is how many leaders that are not quiet greet at a time. A node that comes back makes
// each leader send heartbeats until it follows. If very many did so at once, they would repeat them
// faster than nodes can join, and no ack would come in time: all leases would end.
const mostLoud = 512

// linkUp tells an election of a new link, or of one whose peer begins to take part. A leader whose
// lease lasts without that peer greets it later.
func (d *Driver) linkUp(g *group, peer elector.NodeID) {
	if g.lease != nil && g.lease.backed(g, peer) > d.awake.Add(g.Config.Timing.HeartbeatBroadcast) {
		d.greetings = append(d.greetings, greeting{g, peer})
		return
	}
	d.step(g, elector.LinkUp{Peer: peer})
}

// mayGreet reports whether a leader is to greet now: few are loud, or they have been for so long
// that they wait for somebody who does not join.
func (d *Driver) mayGreet() bool {
	if len(d.greetings) == 0 {
		return false
	}
	period := d.greetings[0].g.Config.Timing.HeartbeatBroadcast
	if d.awake >= d.greetFrom.Add(period) {
		d.greetFrom, d.greeted = d.awake, 0
	}
	return len(d.loud) < mostLoud || d.greeted < mostLoud
}

// greetSome lets the next leaders greet.
func (d *Driver) greetSome() {
	for n := 0; n < batch && d.mayGreet(); n++ {
		next := d.greetings[0]
		d.greetings = d.greetings[1:]
		d.greeted++
		if next.g.tick.Set() && d.up[next.peer] != nil {
			d.step(next.g, elector.LinkUp{Peer: next.peer})
		}
	}
	if len(d.greetings) == 0 {
		d.greetings = nil
	}
}

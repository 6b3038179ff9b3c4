package loop

import (
	"maps"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
)

// turns lets elections do one after the other what would hold up all of them if very many did it at
// once: §16.10.
type turns struct {
	most     atOnce      // how many do it at a time
	underWay func() int  // how many are at it
	strains  func() bool // what they do costs more than there is to spare
	waiting  []turn
	after    int           // how much of Driver.news all are to know before
	do       map[turn]told // what those in it are to do
	from     elector.Time  // the beginning of the present period
	begun    int           // how many have begun in it
}

// turn is that of an election of this node, which waits once, however often it is to do something.
type turn struct {
	*group
	peer elector.NodeID // whom it greets; "" if it gives up its leadership
}

// newTurns makes the turns of greetings and of cessions. A node that comes back makes each leader
// send heartbeats until it follows. If very many did so at once, they would repeat them faster than
// nodes can join, and no ack would come in time: all leases would end.
func (d *Driver) newTurns() {
	d.greetings = turns{most: atOnce{size: narrow}, strains: d.acksAreLate,
		underWay: func() int { return len(d.greeted) }}
	d.cessions = turns{most: atOnce{size: narrow}, strains: func() bool { return false },
		underWay: func() int { return len(d.vacant) }}
}

// acksAreLate reports whether a lease that many share has lost more than half of its time.
func (d *Driver) acksAreLate() bool {
	return slices.ContainsFunc(d.leases, func(l *lease) bool {
		return l.end.Sub(d.Now()) < l.class.Timing.Lease/2
	})
}

// due reports whether the next one is to begin: few are at it, and that strains nobody; or they
// have been for so long that they wait for somebody who does not answer.
func (t *turns) due(now elector.Time) bool {
	most := t.most.size
	return len(t.waiting) > 0 &&
		(t.begun < most || now >= t.until() || t.underWay() < most && !t.strains())
}

// until is the end of the present period, if somebody waits.
func (t *turns) until() elector.Time {
	return t.from.Add(t.waiting[0].Config.Timing.ElectionResult)
}

// turnsDue reports whether somebody's turn has come.
func (d *Driver) turnsDue() bool { return d.greetings.due(d.Now()) || d.cessions.due(d.Now()) }

// wait lets an election wait for its turn, to do what it was told last. How many did it at a time
// long ago says nothing of now.
func (t *turns) wait(d *Driver, next turn, do told) {
	_, waits := t.do[next]
	if t.do == nil {
		t.do = map[turn]told{}
	}
	if t.do[next] = do; waits {
		return
	}
	if t.waiting = append(t.waiting, next); len(t.waiting) > 1 {
		return
	}
	t.after = d.toldBefore + len(d.news)
	if d.Now() >= t.until() {
		t.from, t.begun = d.Now(), 0
		if t.most.size <= wide {
			t.most = atOnce{size: narrow}
		}
	}
}

// begin takes the next one out. One that leads no more has nothing to wait for.
func (t *turns) begin(now elector.Time) (next turn, do told) {
	next = t.waiting[0]
	if now >= t.until() {
		t.from, t.begun = now, 0
	}
	if next.leadTerm != 0 {
		t.begun++
	}
	do = t.do[next]
	delete(t.do, next)
	if t.waiting = t.waiting[1:]; len(t.waiting) == 0 {
		t.waiting, t.do = nil, nil
	}
	return next, do
}

// drop lets nobody greet a peer any more.
func (t *turns) drop(peer elector.NodeID) {
	t.waiting = slices.DeleteFunc(t.waiting, func(next turn) bool { return next.peer == peer })
	maps.DeleteFunc(t.do, func(next turn, _ told) bool { return next.peer == peer })
}

// takeTurns lets the next elections do what they wait for, once all know why. A node that stops has
// taken leave of all whom it follows by then, so nobody gives leadership to it.
func (d *Driver) takeTurns() {
	for _, t := range [...]*turns{&d.greetings, &d.cessions} {
		for n := 0; n < batch && d.toldBefore >= t.after && t.due(d.Now()); n++ {
			if next, do := t.begin(d.Now()); next.tick.Set() {
				do(d, next.group)
			}
		}
	}
}

// linkUp tells an election of a new link, or of one whose peer begins to take part. A leader whose
// lease lasts without that peer greets it later.
func (d *Driver) linkUp(g *group, peer elector.NodeID) {
	greet := func(d *Driver, g *group) {
		if d.up[peer] == nil {
			return
		}
		if d.step(g, elector.LinkUp{Peer: peer}); g.loudAt != 0 {
			d.greeted[g] = d.Now()
		}
	}
	if g.lease != nil && d.lastsWithout(g, peer) {
		d.greetings.wait(d, turn{g, peer}, greet)
		return
	}
	d.step(g, elector.LinkUp{Peer: peer})
}

// lastsWithout reports whether a lease lasts for more than a heartbeat period without a peer. It
// counts voters, too, that joined after the lease was shared: they are not among its backers.
func (d *Driver) lastsWithout(g *group, peer elector.NodeID) bool {
	voters := g.machine.Electorate()
	acks := make([]elector.Time, len(voters))
	for i, voter := range voters {
		s := d.sessions[voter]
		if voter != peer && s != nil && g.machine.Backs(voter, s.identity) {
			acks[i] = s.leads.Support(g.Name, g.leadTerm)
		}
	}
	return g.machine.LeaseFrom(acks) > d.Now().Add(g.Config.Timing.HeartbeatBroadcast)
}

// noteQuiet notes that a leader is quiet again after it has greeted.
func (d *Driver) noteQuiet(g *group) {
	since, greeted := d.greeted[g]
	delete(d.greeted, g)
	if greeted && len(d.greetings.waiting) > 0 {
		d.greetings.most.took(d.Now().Sub(since), g.Config.Timing.Lease/4, d.Now())
	}
}

// cede lets an election do what makes it give up its leadership, if it leads. If very many did so
// at once, they would wait without a leader until their successors have the time to stand.
func (d *Driver) cede(g *group, how told) {
	if g.leadTerm == 0 {
		how(d, g)
		return
	}
	if len(d.cessions.waiting) == 0 {
		clear(d.vacant)
	}
	d.cessions.wait(d, turn{g, ""}, how)
}

// noteCession notes that this node gives an election up to a successor, while others wait for that.
func (d *Driver) noteCession(g *group, m *elector.Message) {
	if m.Kind == elector.LeadershipCession && m.Successor != "" && len(d.cessions.waiting) > 0 {
		d.vacant[g.Name] = d.Now()
	}
}

// noteSuccessor notes that an election which this node gave up has another leader.
func (d *Driver) noteSuccessor(e *event) {
	if e.msg.Kind != elector.LeaderHeartbeat || len(d.vacant) == 0 {
		return
	}
	since, vacant := d.vacant[e.group]
	delete(d.vacant, e.group)
	if w := d.cessions.waiting; vacant && len(w) > 0 {
		// Somebody has no leader meanwhile, so this is to be faster than attempts.
		d.cessions.most.took(d.Now().Sub(since), w[0].Config.Timing.Lease/4, d.Now())
	}
}

package loop

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/netmesh"
)

var _ netmesh.Handler = (*Loop)(nil)

// LinkUp reports a new link. Like the other methods of netmesh.Handler it may wait for room in the
// inbox, which holds up this one link.
func (l *Loop) LinkUp(peer netmesh.PeerInfo) {
	l.Log.Debug("link up", "peer", peer.Node, "boot", peer.Boot, "addr", peer.Remote)
	l.Recorder.Record(recording.Record{
		Kind: recording.LinkUp, Peer: string(peer.Node), PeerBoot: peer.Boot,
		Identity: peer.Identity.String(),
	})
	if peer.Identities != nil {
		l.persister.note(func() error { return l.Store.SaveIdentities(peer.Node, peer.Identities) })
	}
	l.calls.linked(&peer)
	l.later(func(d *Driver) {
		d.up[peer.Node] = &peer
		d.openSession(&peer)
		d.quality.Up(peer.Node)
		d.noteProcess(&peer)
		d.noteReturn(peer.Node)
		d.tellAll(func(d *Driver, g *group) { d.linkUp(g, peer.Node) })
	})
	guarded.Wake(l.Linked)
}

// LinkDown reports the loss of a link, and by what evidence.
func (l *Loop) LinkDown(peer elector.NodeID, ev elector.Evidence) {
	l.Recorder.Record(recording.Record{
		Kind: recording.LinkDown, Peer: string(peer), Why: ev.String(),
	})
	l.calls.lost(peer)
	l.later(func(d *Driver) {
		delete(d.up, peer)
		d.closeSession(peer)
		delete(d.unentitled, peer)
		delete(d.trips, peer)
		d.dropTransfersOf(peer)
		d.stepAll(elector.LinkDown{Peer: peer, Evidence: ev})
	})
	l.Log.Debug("link down", "peer", peer, "evidence", ev.String())
}

// Received hands a message to the driver.
func (l *Loop) Received(from elector.NodeID, group string, m elector.Message) {
	_ = l.post(context.Background(), event{from: from, group: group, msg: m})
}

// Noted hands a note to the driver, except for calls and their answers: they need none.
func (l *Loop) Noted(from elector.NodeID, n netmesh.Note) {
	switch n.Kind {
	case noteCall:
		l.called(from, n.Group, n.Body)
		return
	case noteAnswer:
		l.replied(from, n.Body)
		return
	}
	l.later(func(d *Driver) {
		if g := d.groups[n.Group]; g != nil {
			d.noted(g, from, &n)
		}
	})
}

// process is the process to which the newest link to a voter led.
type process struct {
	identity uuid.UUID
	boot     uint64
	dead     bool // its death is proven
	// since is when a process took the name over from another one whose death was not proven; 0
	// if that never happened.
	since elector.Time
}

// noteProcess notes which process a new link leads to.
func (d *Driver) noteProcess(peer *netmesh.PeerInfo) {
	last, known := d.processes[peer.Node]
	if !d.IsVoter(peer.Node) { // no promise is made to it, as long as that is so
		if last.dead = false; known {
			d.processes[peer.Node] = last
		}
		return
	}
	now := process{identity: peer.Identity, boot: peer.Boot, since: last.since}
	another := now.identity != last.identity || now.boot != last.boot
	if known && another && !last.dead {
		now.since = d.Now()
	}
	d.processes[peer.Node] = now
}

// Died tells the elections that the death of a process is proven. A promise is made to a name. If
// an earlier process of that name may still hold the promise, because this one ran on a copy of
// its data directory, then this death does not end the promise.
func (l *Loop) Died(peer elector.NodeID, proof elector.Proof) {
	l.Recorder.Record(recording.Record{
		Kind: recording.Died, Peer: string(peer), Why: proof.String(),
	})
	l.Log.Debug("process proven dead", "peer", peer, "proof", proof.String())
	l.later(func(d *Driver) {
		p, known := d.processes[peer]
		if p.dead && p.since == 0 {
			return // all know it: its successor has come, which is a second proof
		}
		if known {
			p.dead = true
			d.processes[peer] = p
		}
		d.closeSession(peer)
		now := d.Now()
		d.tellAll(func(d *Driver, g *group) {
			if p.since == 0 || now >= p.since.Add(g.promise()) { // §6.9
				d.step(g, elector.Died{Peer: peer, Proof: proof})
			}
		})
	})
}

// Pinged takes the round-trip times of the newest pings.
func (l *Loop) Pinged(links []netmesh.LinkStatus) {
	l.later(func(d *Driver) {
		trips := map[elector.NodeID]time.Duration{}
		for _, link := range links {
			if !link.Up || !d.IsVoter(link.Peer.Node) {
				continue
			}
			trips[link.Peer.Node] = link.RTT
			d.quality.SetOrdered(link.Peer.Node, link.Beats != netmesh.BeatsDatagrams)
			if link.RTT > 0 {
				d.quality.RoundTrip(link.Peer.Node, link.RTT)
			}
		}
		d.trips, d.majority = trips, majority{}
	})
}

// majority is the newest round trip to a majority of some voters.
type majority struct {
	of   []elector.NodeID
	trip time.Duration
}

// measured tells an election that goes by turns the round trip to a majority of its voters, before
// any other input. It needs only the order of magnitude: small changes are not worth a step.
func (d *Driver) measured(g *group) {
	if g.Config.Timing.MinRandomWait == 0 {
		return
	}
	if voters := g.machine.Electorate(); !slices.Equal(voters, d.majority.of) {
		var trips []time.Duration
		for _, voter := range voters {
			if trip, linked := d.trips[voter]; linked {
				trips = append(trips, trip)
			}
		}
		d.majority = majority{voters, elector.TripToMajority(trips, len(voters))}
	}
	now := d.majority.trip
	if was := g.machine.RoundTrip(); (now - was).Abs() <= was/4 {
		return
	}
	d.stepOnce(g, elector.Measured{RoundTrip: now})
}

// LongestPromise is the longest time for which a promise to a leader binds, over all elections.
func (l *Loop) LongestPromise(ctx context.Context) (time.Duration, error) {
	return ask(ctx, l, func(d *Driver) (longest time.Duration, err error) {
		for _, g := range d.groups {
			longest = max(longest, g.promise())
		}
		return longest, nil
	})
}

// received steps a machine with a message, and then with what the message shows of the link.
func (d *Driver) received(g *group, e *event) {
	if g.Config.QoS != (detector.QoS{}) {
		d.quality.Received(d.Now(), e.group, e.from, &e.msg)
	}
	d.pullAll()
	switch e.msg.Kind {
	case elector.RecordOffer:
		d.offered(g, e.from, &e.msg)
		return
	case elector.RecordAck:
		if o := g.offers[e.from]; o != nil && o.value != nil && !e.msg.Record.Less(o.Record) {
			d.freed(g, e.from, o)
		}
	}
	draws := d.draws(g, e)
	d.step(g, elector.Received{From: e.from, Identity: d.identity(e.from), Message: e.msg})
	if draws && g.machine.Leader() == e.from {
		g.own().drawnBy = e.from
	}
	if g.carried { // the pair's detector is tuned
		return
	}
	if in, changed := g.machine.Tune(d.quality); changed {
		d.step(g, in)
	}
}

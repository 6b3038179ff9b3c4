package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
)

// report logs and publishes what a step led to. The leader before it was lost.
func (d *Driver) report(g *group, e *elector.Effects, lost elector.NodeID) {
	for _, t := range e.Transitions {
		fields := []any{
			"group", g.Name, "term", t.Term,
			"from", t.From.String(), "to", t.To.String(), "reason", t.Reason.String(),
		}
		if t.Leader != "" {
			fields = append(fields, "leader", t.Leader)
		}
		if t.Peer != "" {
			fields = append(fields, "peer", t.Peer)
		}
		level := hclog.Info
		passes := d.surge.Passes(transitionKind{"", t.From, t.To, t.Reason, t.Leader, lost})
		if !passes {
			level = hclog.Debug
		}
		d.Log.Log(level, "transition", fields...)
		if t.Reason == elector.LeaderNoHeartbeat && g.drawnBy != "" {
			d.noteSilence(g, g.drawnBy)
		}
		lost = t.Leader
		if g.drawnBy != "" {
			g.own().drawnBy = ""
		}
		// A node begins to follow when it gets a heartbeat, so the newest link to that peer leads
		// to the process that leads.
		now := time.Now()
		g.since, g.leaderMeta = now.UnixNano(), ""
		if peer := d.up[t.Leader]; peer != nil {
			g.leaderMeta = peer.Meta
		} else if t.Leader == d.Node {
			g.leaderMeta = d.Meta
		}
		if t.Leader != "" {
			d.noteVoters(g)
		}
		d.Publish(g.Name, t, now, g.leaderMeta)
		if passes || g.Election == d.first {
			d.Recorder.Transition(g.Name, &t)
		} else {
			d.Recorder.Skip()
		}
	}
	if e.Anomaly != (elector.Anomaly{}) {
		d.reportAnomaly(g, e.Anomaly)
	}
}

// mostAtATime is how many transitions of a second are logged and recorded one by one, and how many
// changes of voters with them. A node that dies ends tens of thousands of leaderships at a time.
const mostAtATime = 100

// transitionKind is what transitions of many elections have in common, or changes of voters.
type transitionKind struct {
	voters       string // that a record names; "" for a transition
	from, to     elector.Role
	reason       elector.Reason
	leader, lost elector.NodeID // after it, and before
}

// LogSurge logs how many transitions and changes of voters were not logged one by one since it was
// called last.
func (l *Loop) LogSurge() {
	for c, count := range l.surge.Take() {
		if c.voters != "" {
			l.Log.Info("voters", "elections", count, "voters", c.voters,
				"advice", "the level debug has them one by one")
			continue
		}
		l.Log.Info("transitions", "elections", count, "from", c.from.String(), "to", c.to.String(),
			"reason", c.reason.String(), "leader", c.leader, "lost", c.lost,
			"advice", "the level debug has them one by one")
	}
}

// Anomaly counts the anomalies of one kind.
type Anomaly struct {
	Count  int
	Newest time.Time // when the newest came; zero if the anomaly is no message
}

// anomalyOf is a kind of anomaly and the peer that causes it.
type anomalyOf struct {
	kind string
	peer elector.NodeID
}

// reportAnomaly counts and logs an anomaly. It closes the link to a peer whose terms cannot be
// right.
func (d *Driver) reportAnomaly(g *group, a elector.Anomaly) {
	kind := a.Kind.String()
	d.anomalies[kind] = Anomaly{d.anomalies[kind].Count + 1, time.Now()}
	if a.Kind == elector.AnomalyNotEntitled { // this is normal while the voters are changed
		if !d.unentitled[a.Peer] {
			d.unentitled[a.Peer] = true
			d.Log.Info("a node that is no voter here acts as one", "peer", a.Peer, "group", g.Name,
				"advice", "finish the change of the voters, or stop that node: "+
					"docs/operations.md#changing-the-voters")
		}
		return
	}
	if a.Kind == elector.AnomalyOtherLineage {
		text := "no record of its own that this node's descends from"
		if a.Lineage != (elector.Identity{}) {
			text = fmt.Sprintf("the lineage %s", a.Lineage)
		}
		d.Claimed(findings.OtherLineage, a.Peer, fmt.Sprintf("in election %q node %q has %s, this node %s",
			g.Name, a.Peer, text, g.machine.Record().Accepted.Lineage))
	}
	if _, due := d.logged.Due(anomalyOf{kind, a.Peer}); due {
		log := d.Log.Warn
		if a.Kind == elector.AnomalyTwoLeaders {
			log = d.Log.Error
		}
		log("anomaly", "group", g.Name, "kind", kind, "peer", a.Peer,
			"term", a.Term, "message", a.Msg.String())
	}
	if a.Kind == elector.AnomalyAbsurdTerm { // §2.2
		d.Mesh.Disconnect(a.Peer, fmt.Sprintf("%s with the absurd term %d", a.Msg, a.Term))
	}
}

// anomalyLostIsBack is the kind of anomaly of a link to a node that was declared lost.
const anomalyLostIsBack = "lost-node-back"

// noteReturn counts and logs a link to a node that was declared lost.
func (d *Driver) noteReturn(peer elector.NodeID) {
	if !slices.Contains(d.Lost, peer) {
		return
	}
	d.anomalies[anomalyLostIsBack] = Anomaly{Count: d.anomalies[anomalyLostIsBack].Count + 1}
	if _, due := d.logged.Due(anomalyOf{anomalyLostIsBack, peer}); due {
		d.Log.Error("a node that was declared lost is back; stop it, or readmit it if its data "+
			"directory is new", "peer", peer)
	}
}

// countAnomaly counts and logs what a peer should not do.
func (d *Driver) countAnomaly(kind string, peer elector.NodeID) {
	d.anomalies[kind] = Anomaly{d.anomalies[kind].Count + 1, time.Now()}
	if _, due := d.logged.Due(anomalyOf{kind, peer}); due {
		d.Log.Warn("anomaly", "kind", kind, "peer", peer)
	}
}

package loop

import (
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// report logs what a step led to, and lets subscribers know.
func (d *Driver) report(g *group, e *elector.Effects) {
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
		d.Log.Info("transition", fields...)
		if t.Reason == elector.LeaderNoHeartbeat && g.drawnBy != "" {
			d.noteSilence(g, g.drawnBy)
		}
		g.follows, g.drawnBy = t.Leader, ""
		// A node begins to follow when a heartbeat comes, so the newest link is that of the
		// process which leads.
		g.since, g.leaderMeta = time.Now(), d.up[t.Leader]
		if t.Leader == d.Node {
			g.leaderMeta = d.Meta
		}
		d.Publish(g.Name, t, g.since, g.leaderMeta)
		d.Recorder.Transition(g.Name, &t)
	}
	if e.Anomaly != (elector.Anomaly{}) {
		d.reportAnomaly(g, e.Anomaly)
	}
}

// Anomaly is how often something of a kind came that should not, and when last.
type Anomaly struct {
	Count  int
	Newest time.Time // zero if it is no message
}

// anomalyOf is a kind of anomaly, of one peer.
type anomalyOf struct {
	kind string
	peer elector.NodeID
}

// reportAnomaly counts, logs, and closes the link to a peer whose terms cannot
// be right.
func (d *Driver) reportAnomaly(g *group, a elector.Anomaly) {
	kind := a.Kind.String()
	d.anomalies[kind] = Anomaly{d.anomalies[kind].Count + 1, time.Now()}
	if a.Kind == elector.AnomalyNotEntitled { // usual while the voters are changed
		if !d.unentitled[a.Peer] {
			d.unentitled[a.Peer] = true
			d.Log.Info("a node that is no voter here acts as one", "peer", a.Peer, "group", g.Name,
				"advice", "finish the change of the voters, or stop that node: "+
					"docs/operations.md#changing-the-voters")
		}
		return
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

// anomalyLostIsBack counts the links to nodes that were declared lost.
const anomalyLostIsBack = "lost-node-back"

// noteReturn says that a node that was declared lost is there.
func (d *Driver) noteReturn(peer elector.NodeID) {
	if !slices.Contains(d.Lost, peer) {
		return
	}
	d.anomalies[anomalyLostIsBack] = Anomaly{Count: d.anomalies[anomalyLostIsBack].Count + 1}
	if _, due := d.logged.Due(anomalyOf{anomalyLostIsBack, peer}); due {
		d.Log.Error("a node that was declared lost is back; stop it, or readmit it if its data directory is new", "peer", peer)
	}
}

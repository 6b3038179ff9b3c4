package cluster

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// report tells people and subscribers what a step brought about.
func (n *Node) report(g *group, e *elector.Effects) {
	for _, t := range e.Transitions {
		n.log.Info("transition", fields(g, t)...)
		g.since = time.Now()
		n.hub.publish(Event{Group: g.name, Time: g.since, Transition: t})
	}
	if e.Anomaly != (elector.Anomaly{}) {
		n.reportAnomaly(g, e.Anomaly)
	}
}

// fields are those of a transition that mean something.
func fields(g *group, t elector.Transition) []any {
	all := []any{"group", g.name, "term", t.Term, "from", t.From.String(), "to", t.To.String(), "reason", t.Reason.String()}
	if t.Leader != "" {
		all = append(all, "leader", t.Leader)
	}
	if t.Peer != "" {
		all = append(all, "peer", t.Peer)
	}
	return all
}

// anomalyQuiet is how long one kind of anomaly from one peer is not logged
// again: a peer that goes on and on must not fill the disk.
const anomalyQuiet = time.Minute

// maxLogged bounds the anomalies that are remembered for that.
const maxLogged = 1024

// reportAnomaly counts, logs, and closes the link to a peer whose terms cannot
// be right.
func (n *Node) reportAnomaly(g *group, a elector.Anomaly) {
	n.anomalies[a.Kind.String()]++
	n.lastAnomaly[a.Kind.String()] = time.Now()
	key := fmt.Sprint(a.Kind, a.Peer)
	if len(n.logged) >= maxLogged { // peers come and go, under names of their own choice
		clear(n.logged)
	}
	if now := time.Now(); now.Sub(n.logged[key]) >= anomalyQuiet {
		n.logged[key] = now
		log := n.log.Warn
		if a.Kind == elector.AnomalyTwoLeaders {
			log = n.log.Error
		}
		log("anomaly", "group", g.name, "kind", a.Kind.String(), "peer", a.Peer, "term", a.Term, "message", a.Msg.String())
	}
	if a.Kind == elector.AnomalyAbsurdTerm { // §2.2
		n.mesh.Disconnect(a.Peer, fmt.Sprintf("%s with the absurd term %d", a.Msg, a.Term))
	}
}

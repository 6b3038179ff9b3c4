package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

var (
	nodeInfo = gauge("node_info", "Always 1; the labels say which node this is.",
		"bmqelect_cluster", "node", "version", "identity")
	boots      = counter("boots_total", "Starts of a node on this data directory, this one included.")
	nodeFailed = gauge("node_failed", "1 if the node takes no part any more because it failed.")

	emergencies = gauge("emergencies_declared", "Emergencies on record in the data directory: voters that were declared lost.")
	lost        = gauge("voters_lost", "Voters that were declared lost, and not readmitted since.")
	voters      = gauge("voters", "Voters that count: those of the configuration that were not declared lost.")
	reachable   = gauge("voters_reachable", "Voters that count and to which there is a link, this node included.")
	spare       = gauge("spare_voters", "Reachable voters beyond the quorum, in the election that has the fewest; below 0 there is no quorum.")
	spareMost   = gauge("spare_voters_configured", "What bmqelect_spare_voters is when every voter is reachable.")
)

func collectNode(out chan<- prometheus.Metric, status *cluster.Status, stats *cluster.Stats) {
	send(out, nodeInfo, 1, status.Cluster, string(status.Node), status.Version, status.Identity)
	send(out, boots, status.Boot)
	sendTruth(out, nodeFailed, status.Failure != "")
	send(out, emergencies, len(status.Emergencies))
	send(out, lost, lostVoters(status.Emergencies))
	send(out, voters, stats.Voters)
	send(out, reachable, stats.VotersReachable)
	quorum := 0
	for _, e := range stats.Elections {
		quorum = max(quorum, e.Quorum)
	}
	send(out, spare, stats.VotersReachable-quorum)
	send(out, spareMost, stats.Voters-quorum)
}

// lostVoters counts those whom emergencies keep from voting.
func lostVoters(all []cluster.EmergencyStatus) (count int) {
	for _, e := range all {
		count += len(e.Lost) - len(e.Readmitted)
	}
	return count
}

var (
	anomalies = counter("anomalies_total", "Odd messages from other members, which were refused or ignored, by kind.", "kind")
	broken    = counter("invariants_broken_total", "Times that the node met what the protocol excludes.", "invariant")
	closed    = counter("connections_closed_total", "Connections that were refused, or closed by a rule, by reason.", "reason")
	found     = gauge("findings", "What is wrong between this node and others at the moment, by kind.", "kind")
)

// collectOdd puts out what should not be. Everything that there is has its zero,
// lest the first time be missed by a rate.
func collectOdd(out chan<- prometheus.Metric, status *cluster.Status, stats *cluster.Stats) {
	for _, k := range []elector.AnomalyKind{elector.AnomalyAbsurdTerm, elector.AnomalyNotEntitled, elector.AnomalyMalformed, elector.AnomalyTermLeap} {
		send(out, anomalies, status.Anomalies[k.String()], k.String())
	}
	two := elector.AnomalyTwoLeaders.String()
	send(out, broken, status.Anomalies[two], two)
	for _, r := range netmesh.Reasons() {
		send(out, closed, status.Refused[r.String()], r.String())
	}
	kinds := map[findings.Kind]int{}
	for _, f := range stats.Findings {
		kinds[f.Kind]++
	}
	for _, k := range findings.Kinds() {
		send(out, found, kinds[k], string(k))
	}
}

var (
	inboxWait     = histogram("inbox_wait_seconds", "Time that events, due ticks among them, waited for the node's driver.")
	inboxEvents   = gauge("inbox_events", "Events that wait for the node's driver.")
	storeWrite    = histogram("store_write_seconds", "Time until terms were on disk, fsync included.")
	storeWriting  = gauge("store_writing_seconds", "Time that the write under way has taken so far; 0 if there is none.")
	eventsMissed  = counter("events_missed_total", "Events that were dropped because a subscriber was slow.")
	subscriptions = gauge("subscriptions", "Subscriptions to events that are open.")
)

func collectDriver(out chan<- prometheus.Metric, stats *cluster.Stats) {
	sendSpread(out, inboxWait, stats.InboxWait)
	send(out, inboxEvents, stats.InboxLength)
	sendSpread(out, storeWrite, stats.StoreWrite)
	send(out, storeWriting, stats.StoreWriting)
	send(out, eventsMissed, stats.MissedEvents)
	send(out, subscriptions, stats.Subscriptions)
}

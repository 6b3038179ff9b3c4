package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

var (
	nodeInfo = gauge("node_info", "Always 1; the labels name the node.", "bmqelect_cluster", "node",
		"version", "identity")
	boots      = counter("boots_total", "Starts of a node on this data directory.")
	nodeFailed = gauge("node_failed", "1 if the node failed, so that it takes no part any more.")

	lost   = gauge("voters_lost", "Voters that were declared lost and not readmitted.")
	voters = gauge("voters", "Voters that count: without those that were declared lost.")
	spare  = gauge("spare_voters",
		"Reachable voters beyond the largest quorum; below 0 there is no quorum.")
	spareMost = gauge("spare_voters_configured", "Spare voters when every voter is reachable.")
)

func collectNode(out chan<- prometheus.Metric, status *cluster.Status, stats *cluster.Stats) {
	send(out, nodeInfo, 1, status.Cluster, string(status.Node), status.Version, status.Identity)
	send(out, boots, status.Boot)
	sendTruth(out, nodeFailed, status.Failure != "")
	declared := 0
	for _, e := range status.Emergencies {
		declared += len(e.Lost) - len(e.Readmitted)
	}
	send(out, lost, declared)
	send(out, voters, stats.Voters)
	quorum := 0
	for _, e := range stats.Elections {
		quorum = max(quorum, e.Quorum)
	}
	send(out, spare, stats.VotersReachable-quorum)
	send(out, spareMost, stats.Voters-quorum)
}

var (
	anomalies = counter("anomalies_total", "Messages that no correct member sends.", "kind")
	broken    = counter("invariants_broken_total",
		"Times that the node saw what the protocol excludes.", "invariant")
	closed = counter("connections_closed_total",
		"Connections that were refused, or closed by a rule.", "reason")
	found = gauge("findings", "Problems between this node and others now.", "kind")
)

// collectProblems puts out what should not be. Each label value is there from the start,
// at 0, so that a rate sees its first increase.
func collectProblems(out chan<- prometheus.Metric, status *cluster.Status, stats *cluster.Stats) {
	for _, k := range []elector.AnomalyKind{
		elector.AnomalyAbsurdTerm, elector.AnomalyNotEntitled, elector.AnomalyMalformed,
		elector.AnomalyTermLeap,
	} {
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
	inboxWait    = histogram("inbox_wait_seconds", "Time that events and ticks waited for the driver.")
	storeWrite   = histogram("store_write_seconds", "Time until terms were on disk, fsync included.")
	storeWriting = gauge("store_writing_seconds", "Age of the write under way; 0 if there is none.")
	eventsMissed = counter("events_missed_total", "Events dropped because a subscriber was slow.")
)

func collectDriver(out chan<- prometheus.Metric, stats *cluster.Stats) {
	sendSpread(out, inboxWait, stats.InboxWait)
	sendSpread(out, storeWrite, stats.StoreWrite)
	send(out, storeWriting, stats.StoreWriting)
	send(out, eventsMissed, stats.MissedEvents)
}

package metrics

import (
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/health"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/scouting"
)

const perMillion = 1e6

// metrics are all metrics of a node. All values of a label exist from the start, as 0, so that a
// rate sees the first increase.
var metrics = []metric{
	newMetric(gauge, "node_info", "Always 1; the labels name the node.",
		[]string{"bmqelect_cluster", "node", "version", "identity"},
		func(n *node, out output) {
			st := n.status
			out.value(1, st.Cluster, string(st.Node), st.Version, st.Identity)
		}),
	single(counter, "boots_total", "Starts of a node on this data directory.",
		func(n *node) uint64 { return n.status.Boot }),
	single(gauge, "node_failed", "1 if the node failed and takes no part any more.",
		func(n *node) int { return truth(n.status.Failure != "") }),
	newMetric(gauge, "certificate_end_timestamp_seconds",
		"When this node's certificate ends, or its CA's before it; absent without TLS.", nil,
		func(n *node, out output) {
			if end := n.status.CertificateEnd; !end.IsZero() {
				out.value(float64(end.Unix()))
			}
		}),
	single(gauge, "pause_left_seconds", "Time for which elections are paused; 0 if they are not.",
		func(n *node) cluster.Seconds { return n.stats.PauseLeft }),
	single(gauge, "voters_lost", "Voters that were declared lost and not readmitted.",
		func(n *node) (lost int) {
			for _, e := range n.status.Emergencies {
				lost += len(e.Lost) - len(e.Readmitted)
			}
			return lost
		}),
	single(gauge, "voters", "Voters, without those that were declared lost.",
		func(n *node) int { return n.stats.Voters }),
	single(gauge, "spare_voters",
		"Reachable voters beyond the largest quorum; below 0 there is no quorum.",
		func(n *node) int { return n.stats.VotersReachable - n.stats.Sums.Quorum }),
	single(gauge, "spare_voters_configured", "Spare voters when every voter is reachable.",
		func(n *node) int { return n.stats.Voters - n.stats.Sums.Quorum }),

	perProbe(gauge, "probe_up", "1 if a health probe finds this node fit to lead, 0 if not.",
		func(s health.Status) float64 { return float64(truth(s.Fit)) }),
	perProbe(counter, "probe_failures_total", "Checks of a health probe that failed.",
		func(s health.Status) float64 { return float64(s.Failures) }),
	perProbe(gauge, "probe_seconds", "Time that the newest check of a health probe took.",
		func(s health.Status) float64 { return s.Seconds }),

	perElection(gauge, "role", "0 DORMANT, 1 FOLLOWER, 2 CANDIDATE, 3 LEADER.",
		func(e cluster.ElectionStats) elector.Role { return e.Role }),
	perElection(gauge, "leading", "1 while this node leads and its lease is valid.",
		func(e cluster.ElectionStats) int { return truth(e.Leading) }),
	perElection(gauge, "has_leader", "1 while this node leads or follows a leader.",
		func(e cluster.ElectionStats) int { return truth(e.Leader != "") }),
	perElection(gauge, "term",
		"Term of the leadership held or followed, otherwise the node's own.",
		func(e cluster.ElectionStats) uint64 { return uint64(e.Term) }),
	perElection(gauge, "lsn", "Counter of the newest LSN issued or seen in this term.",
		func(e cluster.ElectionStats) uint64 { return e.LSN.Counter }),
	perElection(gauge, "lease_left_seconds",
		"Time until the lease ends; 0 if this node has none.",
		func(e cluster.ElectionStats) cluster.Seconds { return e.LeaseLeft }),
	perElection(counter, "leaderships_total",
		"Times that this node came to lead, or to follow a leader.",
		func(e cluster.ElectionStats) uint64 { return e.Leaderships }),

	perRecord("record_term", "Term of the newest record that is known to be committed.",
		func(r *cluster.RecordStatus) float64 { return float64(r.Committed.Term) }),
	perRecord("record_counter", "Counter of the newest record that is known to be committed.",
		func(r *cluster.RecordStatus) float64 { return float64(r.Committed.Counter) }),
	perRecord("record_uncommitted", "1 while a newer record is on disk, not known to be committed.",
		func(r *cluster.RecordStatus) float64 {
			return float64(truth(r.Committed.Less(r.Accepted)))
		}),
	perRecord("record_value_bytes", "Size of the value of the committed record.",
		func(r *cluster.RecordStatus) float64 { return float64(r.ValueSize) }),
	perRecord("record_voters", "Voters of the newest record on disk.",
		func(r *cluster.RecordStatus) float64 { return float64(len(r.Voters)) }),
	perRecord("record_voters_behind", "On the leader: voters that lack its newest record.",
		func(r *cluster.RecordStatus) float64 { return float64(len(r.Behind)) }),
	perRecord("record_voters_change", "On the leader: 1 while a change of voters is under way.",
		func(r *cluster.RecordStatus) float64 { return float64(truth(r.Change != "")) }),
	perRecord("record_voters_unlike_configuration",
		"1 if the configuration of this node has other voters than the record.",
		func(r *cluster.RecordStatus) float64 { return float64(truth(len(r.Configured) > 0)) }),

	perQoS("qos_met", "1 if the leader's crash is detected as asked, 0 if not.",
		nil, func(q *cluster.QoSStatus, value func(float64, ...string)) {
			if q.Detect > 0 {
				value(float64(truth(q.Met)))
			}
		}),
	perQoS("qos_loss_ratio", "Share of heartbeats that are lost.",
		nil, func(q *cluster.QoSStatus, value func(float64, ...string)) {
			if q.Detect > 0 {
				value(q.Loss)
			}
		}),
	perQoS("qos_accuracy_ratio", "Share of time without a mistake, as asked and as promised.",
		[]string{"accuracy"}, func(q *cluster.QoSStatus, value func(float64, ...string)) {
			if q.Asked.Accuracy > 0 {
				value(q.Asked.Accuracy, "asked")
			}
			if q.Mistakes > 0 {
				value(q.Accuracy, "promised")
			}
		}),
	perQoS("qos_seconds", "Times asked, measured, needed, kept and promised.",
		[]string{"time"}, func(q *cluster.QoSStatus, value func(float64, ...string)) {
			for _, t := range []struct {
				name string
				time cluster.Seconds
			}{
				{"asked-detect", cluster.Seconds(q.Asked.Detect.Seconds())},
				{"asked-mistakes", cluster.Seconds(time.Duration(q.Asked.Mistakes).Seconds())},
				{"asked-duration", cluster.Seconds(q.Asked.Duration.Seconds())},
				{"wanted", q.Wanted}, {"period", q.Period}, {"delay", q.Delay}, {"deviation", q.Deviation},
				{"detect", q.Detect}, {"mistakes", q.Mistakes},
			} {
				if t.time > 0 {
					value(float64(t.time), t.name)
				}
			}
		}),

	newMetric(gauge, "elections", "Open elections by the node's role.", []string{"role"},
		func(n *node, out output) {
			for r := elector.Dormant; r <= elector.Leader; r++ {
				out.value(float64(n.stats.Sums.Roles[r.String()]), r.String())
			}
		}),
	sum(gauge, "elections_leading", "Open elections that this node leads with a valid lease.",
		func(s *cluster.Sums) int { return s.Leading }),
	sum(gauge, "elections_without_leader", "Open elections in which the node knows no leader.",
		func(s *cluster.Sums) int { return s.WithoutLeader }),
	sum(gauge, "elections_without_leader_longest_seconds",
		"Longest time for which the node has known no leader; 0 if it knows all.",
		func(s *cluster.Sums) cluster.Seconds { return s.LongestWithout }),
	sum(gauge, "elections_term_highest", "Highest term of the open elections.",
		func(s *cluster.Sums) uint64 { return uint64(s.HighestTerm) }),
	sum(gauge, "elections_voters_behind",
		"Elections that this node leads and in which a voter lacks the newest record.",
		func(s *cluster.Sums) int { return s.VotersBehind }),
	sum(gauge, "elections_voters_change",
		"Elections that this node leads and whose voters are being changed.",
		func(s *cluster.Sums) int { return s.VotersChange }),
	single(gauge, "elections_unlisted", "Open elections without series of their own.",
		func(n *node) int { return n.stats.Sums.Open - len(n.stats.Elections) }),
	sum(gauge, "guarded_work_overdue",
		"Elections whose guarded work goes on after the leadership.",
		func(s *cluster.Sums) int { return s.WorkOverdue }),
	sum(counter, "work_ends_total",
		"Times that an election's work ended although nobody told it to.",
		func(s *cluster.Sums) uint64 { return s.WorkEnds }),
	newMetric(counter, "leader_changes_total",
		"Changes of the leader, to none included, over all elections.", []string{"reason"},
		func(n *node, out output) {
			for reason, count := range n.stats.LeaderChanges {
				out.value(float64(count), reason.String())
			}
		}),
	newMetric(gauge, "election_phase_seconds",
		"Time that phases of elections took on this node.", []string{"phase"},
		func(n *node, out output) {
			for phase, spread := range n.stats.Phases {
				out.spread(spread, phase)
			}
		}),
	histogram("leaderless_seconds", "Time from the loss of a leader to the next one.",
		func(n *node) cluster.Histogram { return n.stats.Leaderless }),
	histogram("lease_left_at_renewal_ratio",
		"Share of the lease that was left when it was renewed.",
		func(n *node) cluster.Histogram { return n.stats.LeaseLeft }),
	answers("scouting_answers_total", "Answers to ElectionScouting.",
		func(s *cluster.Stats) (given, received cluster.Answers) {
			return s.ScoutingGiven, s.ScoutingReceived
		}),
	answers("vote_answers_total", "Answers to ElectionProposal.",
		func(s *cluster.Stats) (given, received cluster.Answers) {
			return s.VotesGiven, s.VotesReceived
		}),

	newMetric(counter, "anomalies_total", "Messages that no correct member sends.",
		[]string{"kind"}, func(n *node, out output) {
			for _, k := range []elector.AnomalyKind{
				elector.AnomalyAbsurdTerm, elector.AnomalyNotEntitled, elector.AnomalyMalformed,
				elector.AnomalyTermLeap, elector.AnomalyOtherLineage,
			} {
				out.value(float64(n.status.Anomalies[k.String()]), k.String())
			}
		}),
	newMetric(counter, "invariants_broken_total",
		"Times that the node saw what the protocol excludes.", []string{"invariant"},
		func(n *node, out output) {
			two := elector.AnomalyTwoLeaders.String()
			out.value(float64(n.status.Anomalies[two]), two)
		}),
	newMetric(counter, "connections_closed_total",
		"Connections that were refused, or closed by a rule.", []string{"reason"},
		func(n *node, out output) {
			for _, r := range netmesh.Reasons() {
				out.value(float64(n.status.Refused[r.String()]), r.String())
			}
		}),
	newMetric(gauge, "findings", "Problems between this node and others now.",
		[]string{"kind"}, func(n *node, out output) {
			kinds := map[findings.Kind]float64{}
			for _, f := range n.stats.Findings {
				kinds[f.Kind]++
			}
			for _, k := range findings.Kinds() {
				out.value(kinds[k], string(k))
			}
		}),

	histogram("inbox_wait_seconds", "Time that events and ticks waited for the driver.",
		func(n *node) cluster.Histogram { return n.stats.InboxWait }),
	single(counter, "stalls_total", "Timers that fired late by half a heartbeat period or more.",
		func(n *node) uint64 { return n.stats.Stalls }),
	histogram("store_write_seconds", "Time until terms were on disk, fsync included.",
		func(n *node) cluster.Histogram { return n.stats.StoreWrite }),
	single(gauge, "store_writing_seconds", "Age of the write under way; 0 if there is none.",
		func(n *node) cluster.Seconds { return n.stats.StoreWriting }),
	single(counter, "records_lost_total", "Events that could not be recorded on disk.",
		func(n *node) uint64 { return n.stats.RecordsLost }),
	single(counter, "log_lines_lost_total", "Log lines dropped because the logger was too slow.",
		func(n *node) uint64 { return n.stats.LogLinesLost }),
	single(counter, "events_missed_total", "Events dropped because a subscriber was slow.",
		func(n *node) uint64 { return n.stats.MissedEvents }),
	byReason("messages_uninvited_total",
		"Messages of elections that are not open here, and that they did not open.",
		func(n *node) map[string]uint64 { return n.stats.Uninvited }),
	byReason("datagrams_dropped_total",
		"Datagrams at the mesh's port that did not count: strangers' ones, copies, late ones.",
		func(n *node) map[string]uint64 { return n.stats.DatagramsDropped }),

	single(gauge, "peers_unlisted", "Members without series of their own.",
		func(n *node) int { return len(n.stats.Links) - len(n.links) }),
	perLink("link_up", "1 while there is a link to the member.",
		func(_ *node, l netmesh.LinkStatus) (float64, bool) { return float64(truth(l.Up)), true }),
	perLink("link_datagrams", "1 while beats go to the member as datagrams.",
		func(_ *node, l netmesh.LinkStatus) (float64, bool) {
			return float64(truth(l.Beats == netmesh.BeatsDatagrams)), l.Up
		}),
	perLink("link_queue_messages", "Messages that wait to be sent.",
		func(_ *node, l netmesh.LinkStatus) (float64, bool) { return float64(l.Queued), true }),
	perLink("link_loss_ratio", "Share of the recent pings without an answer.",
		func(_ *node, l netmesh.LinkStatus) (float64, bool) { return l.Loss, l.Up }),
	perLink("link_rtt_seconds", "Smoothed round-trip time of pings.",
		func(_ *node, l netmesh.LinkStatus) (float64, bool) {
			return l.RTT.Seconds(), l.Up && l.RTT > 0
		}),
	perLink("link_clock_rate_ratio", "How much faster than this node's clock the peer's runs.",
		func(n *node, l netmesh.LinkStatus) (float64, bool) {
			c := n.stats.Clocks[l.Peer.Node]
			return c.Rate / perMillion, l.Up && c.Doubt > 0
		}),
	perLink("link_clock_rate_doubt_ratio", "Most by which the clock rate may be wrong.",
		func(n *node, l netmesh.LinkStatus) (float64, bool) {
			c := n.stats.Clocks[l.Peer.Node]
			return c.Doubt / perMillion, l.Up && c.Doubt > 0
		}),
	newMetric(counter, "link_bytes_total", "Bytes that passed.", []string{"peer", "direction"},
		func(n *node, out output) {
			for _, l := range n.links {
				out.value(float64(l.BytesIn), string(l.Peer.Node), "in")
				out.value(float64(l.BytesOut), string(l.Peer.Node), "out")
			}
		}),
}

// byReason counts by a label whose values are all there from the start.
func byReason(name, help string, read func(*node) map[string]uint64) metric {
	return newMetric(counter, name, help, []string{"reason"}, func(n *node, out output) {
		for reason, count := range read(n) {
			out.value(float64(count), reason)
		}
	})
}

// answers counts the answers that a node gave and got, refusals by their cause.
func answers(
	name, help string, read func(*cluster.Stats) (given, received cluster.Answers),
) metric {
	return newMetric(counter, name, help, []string{"direction", "answer"},
		func(n *node, out output) {
			given, received := read(&n.stats)
			for direction, a := range map[string]cluster.Answers{"given": given, "received": received} {
				out.value(float64(a.Yes), direction, "yes")
				for c := scouting.CauseLeader; c.Valid(); c++ {
					out.value(float64(a.No[c]), direction, c.String())
				}
			}
		})
}

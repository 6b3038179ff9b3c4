package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/scouting"
)

// maxElections bounds the elections that have series of their own, seven each: the default
// one, and the first of the others by name. All are in the sums.
const maxElections = 200

var (
	role      = gauge("role", "0 DORMANT, 1 FOLLOWER, 2 CANDIDATE, 3 LEADER.", "group")
	leading   = gauge("leading", "1 while this node leads and its lease is valid.", "group")
	hasLeader = gauge("has_leader", "1 while this node leads or follows a leader.", "group")
	term      = gauge("term", "Term of the leadership held or followed, otherwise the node's own.",
		"group")
	newestLSN = gauge("lsn", "Counter of the newest LSN issued or seen in this term.", "group")
	leaseLeft = gauge("lease_left_seconds", "Time until the lease ends; 0 if this node has none.",
		"group")
	leaderships = counter("leaderships_total",
		"Times that this node came to lead, or to follow a leader.", "group")
)

func collectElections(out chan<- prometheus.Metric, all []cluster.ElectionStats) {
	all = slices.Clone(all)
	rank := func(e cluster.ElectionStats) int { return boolToInt(e.Group != cluster.DefaultGroup) }
	slices.SortStableFunc(all, func(a, b cluster.ElectionStats) int { return rank(a) - rank(b) })
	for _, e := range all[:min(len(all), maxElections)] {
		send(out, role, uint8(e.Role), e.Group)
		sendTruth(out, leading, e.Leading, e.Group)
		sendTruth(out, hasLeader, e.Leader != "", e.Group)
		send(out, term, uint64(e.Term), e.Group)
		send(out, newestLSN, e.LSN.Counter, e.Group)
		send(out, leaseLeft, e.LeaseLeft, e.Group)
		send(out, leaderships, e.Leaderships, e.Group)
	}
}

var (
	elections  = gauge("elections", "Open elections by the node's role.", "role")
	leaderless = gauge("elections_without_leader",
		"Open elections in which the node knows no leader.")
	unlisted = gauge("elections_unlisted", "Open elections without series of their own.")
	overdue  = gauge("guarded_work_overdue",
		"Elections whose guarded work goes on after the leadership.")
	leaderChanges = counter("leader_changes_total",
		"Changes of the leader, to none included, over all elections.", "reason")
	phases = histogram("election_phase_seconds",
		"Time that the phases of elections took on this node.", "phase")
	gaps       = histogram("leaderless_seconds", "Time from the loss of a leader to the next one.")
	leaseShare = histogram("lease_left_at_renewal_ratio",
		"Share of the lease that was left when it was renewed.")
)

func collectSums(out chan<- prometheus.Metric, stats *cluster.Stats) {
	roles, without, late := map[elector.Role]int{}, 0, 0
	for _, e := range stats.Elections {
		roles[e.Role]++
		if e.Leader == "" {
			without++
		}
		if e.WorkOverdue {
			late++
		}
	}
	for r := elector.Dormant; r <= elector.Leader; r++ {
		send(out, elections, roles[r], r.String())
	}
	send(out, leaderless, without)
	send(out, unlisted, max(0, len(stats.Elections)-maxElections))
	send(out, overdue, late)
	for reason, count := range stats.LeaderChanges {
		send(out, leaderChanges, count, reason.String())
	}
	for phase, spread := range stats.Phases {
		sendSpread(out, phases, spread, phase)
	}
	sendSpread(out, gaps, stats.Leaderless)
	sendSpread(out, leaseShare, stats.LeaseLeft)
}

var (
	scoutingAnswers = counter("scouting_answers_total", "Answers to ElectionScouting.", "direction",
		"answer")
	voteAnswers = counter("vote_answers_total", "Answers to ElectionProposal.", "direction",
		"answer")
)

func collectAnswers(out chan<- prometheus.Metric, stats *cluster.Stats) {
	for _, a := range []struct {
		of        family
		direction string
		answers   cluster.Answers
	}{
		{scoutingAnswers, "given", stats.ScoutingGiven},
		{scoutingAnswers, "received", stats.ScoutingReceived},
		{voteAnswers, "given", stats.VotesGiven},
		{voteAnswers, "received", stats.VotesReceived},
	} {
		send(out, a.of, a.answers.Yes, a.direction, "yes")
		for c := scouting.CauseLeader; c.Valid(); c++ {
			send(out, a.of, a.answers.No[c], a.direction, c.String())
		}
	}
}

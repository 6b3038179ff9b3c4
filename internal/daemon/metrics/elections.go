package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/scouting"
)

// maxElections bounds the elections that get series of their own, eight each: the
// default one, and the first of the others by name. The rest is in the sums.
const maxElections = 200

var (
	role        = gauge("role", "Role of the node in the election: 0 DORMANT, 1 FOLLOWER, 2 CANDIDATE, 3 LEADER.", "group")
	leading     = gauge("leading", "1 while this node leads the election and its lease is valid.", "group")
	hasLeader   = gauge("has_leader", "1 while this node leads the election or follows a leader.", "group")
	term        = gauge("term", "Term of the leadership that the node holds or follows, or else its own.", "group")
	newestLSN   = gauge("lsn", "Counter of the newest LSN issued or heard of; it begins anew with each term.", "group")
	leaseLeft   = gauge("lease_left_seconds", "Time until the lease ends unless it is renewed; 0 if this node does not lead or needs none.", "group")
	quorum      = gauge("quorum", "Voters needed to elect.", "group")
	leaderships = counter("leaderships_total", "Times that this node came to lead the election, or to follow a leader.", "group")
)

func collectElections(out chan<- prometheus.Metric, all []cluster.ElectionStats) {
	for _, e := range listed(all) {
		send(out, role, uint8(e.Role), e.Group)
		sendTruth(out, leading, e.Leading, e.Group)
		sendTruth(out, hasLeader, e.Leader != "", e.Group)
		send(out, term, uint64(e.Term), e.Group)
		send(out, newestLSN, e.LSN.Counter, e.Group)
		send(out, leaseLeft, e.LeaseLeft, e.Group)
		send(out, quorum, e.Quorum, e.Group)
		send(out, leaderships, e.Leaderships, e.Group)
	}
}

// listed are the elections with series of their own.
func listed(all []cluster.ElectionStats) []cluster.ElectionStats {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b cluster.ElectionStats) int { return rank(a.Group) - rank(b.Group) })
	return all[:min(len(all), maxElections)]
}

// rank lets the default election come first.
func rank(group string) int {
	if group == cluster.DefaultGroup {
		return 0
	}
	return 1
}

var (
	elections     = gauge("elections", "Open elections by the node's role.", "role")
	leaderless    = gauge("elections_without_leader", "Open elections in which the node perceives no leader.")
	unlisted      = gauge("elections_unlisted", "Open elections without series of their own, because there are too many.")
	overdue       = gauge("guarded_work_overdue", "Elections in which guarded work goes on although its leadership is over.")
	leaderChanges = counter("leader_changes_total", "Changes of the leader that the node is or follows, to none included, over all elections.", "reason")
	phases        = histogram("election_phase_seconds", "Time that the phases of elections took on this node.", "phase")
	gaps          = histogram("leaderless_seconds", "Time from the loss of a leader to the next one, over all elections.")
	leaseShare    = histogram("lease_left_at_renewal_ratio", "How much of the lease was left when it was renewed, over all elections that this node leads.")
)

func collectSums(out chan<- prometheus.Metric, stats *cluster.Stats) {
	roles, none, late := map[elector.Role]int{}, 0, 0
	for _, e := range stats.Elections {
		roles[e.Role]++
		if e.Leader == "" {
			none++
		}
		if e.WorkOverdue {
			late++
		}
	}
	for r := elector.Dormant; r <= elector.Leader; r++ {
		send(out, elections, roles[r], r.String())
	}
	send(out, leaderless, none)
	send(out, unlisted, max(0, len(stats.Elections)-maxElections))
	send(out, overdue, late)
	for reason, count := range stats.LeaderChanges {
		send(out, leaderChanges, count, reason.String())
	}
	for phase, spread := range stats.Phases {
		sendSpread(out, phases, spread, phase.String())
	}
	sendSpread(out, gaps, stats.Leaderless)
	sendSpread(out, leaseShare, stats.LeaseLeft)
}

var (
	scoutingAnswers = counter("scouting_answers_total", "Answers to ElectionScouting: yes, or the cause of the no.", "direction", "answer")
	voteAnswers     = counter("vote_answers_total", "Answers to ElectionProposal: yes, or the cause of the no.", "direction", "answer")
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

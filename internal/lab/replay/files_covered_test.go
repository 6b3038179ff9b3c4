package replay

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// covered are the situations that the files must show, each with the files that show it, and
// what each must contain. Every file is here.
var covered = []struct {
	what  string
	files []string
	has   func(*scenario.Scenario) bool
}{
	{"the article's cases with scouting", []string{"non-sticky-leader", "leader-ping-pong"},
		func(s *scenario.Scenario) bool {
			return s.Scouting && s.Begin.Term == 10 && wants(s, "leader_changes") &&
				wants(s, "max_term")
		}},
	{"the article's cases without scouting", []string{"non-sticky-leader-without-scouting",
		"leader-ping-pong-without-scouting"},
		func(s *scenario.Scenario) bool { return !s.Scouting && s.Begin.Term == 10 }},
	{"cold start", []string{"cold-start", "partial-ring-cold"},
		func(s *scenario.Scenario) bool { return s.Begin.Leader == "" }},
	{"a node starts", []string{"node-start"}, func(s *scenario.Scenario) bool {
		return anyNode(s,
			func(n scenario.Node) bool { return n.Absent })
	}},
	{"the leader crashes", []string{"leader-crash", "concurrent-candidates", "partial-hub",
		"node-order-hub", "lagging-term"}, leaderCrashes},
	{"graceful stop", []string{"graceful-stop", "priorities"}, doing("stop")},
	{"transfer", []string{"transfer"}, doing("transfer")},
	{"a step-down", []string{"step-down"},
		func(s *scenario.Scenario) bool { return first(s, "step-down").Rest > 0 }},
	{"a leader whose application cannot lead", []string{"unfit-leader"}, doing("unfit")},
	{"takeover by priority", []string{"takeover", "takeover-of-a-spoke"},
		func(s *scenario.Scenario) bool { return s.Election.Takeover > 0 }},
	{"a majority is lost and comes back", []string{"majority-lost-and-back"},
		func(s *scenario.Scenario) bool { return crashed(s) > len(s.Nodes)/2 }},
	{"a minority crashes and restarts", []string{"minority-crash-and-restart"},
		func(s *scenario.Scenario) bool { return 2*crashed(s) < len(s.Nodes) }},
	{"rolling restart", []string{"rolling-restart"},
		func(s *scenario.Scenario) bool { return count(s, "restart") == len(s.Nodes) }},
	{"full restart", []string{"full-restart"},
		func(s *scenario.Scenario) bool { return crashed(s) == len(s.Nodes) && does(s, "restart") }},
	{"a split into halves", []string{"even-split-2-2", "even-split-3-3"},
		func(s *scenario.Scenario) bool {
			n := len(s.Nodes)
			return does(s, "partition") && 2*len(first(s, "partition").Cut) == n*n
		}},
	{"a split with the leader in the minority", []string{"minority-partition-with-leader"},
		doing("partition")},
	{"one node", []string{"one-node"}, func(s *scenario.Scenario) bool { return len(s.Nodes) == 1 }},
	{"two nodes", []string{"two-nodes"}, func(s *scenario.Scenario) bool { return len(s.Nodes) == 2 }},
	{"one-way cuts", []string{"one-way-leader-deaf", "one-way-leader-mute", "one-way-follower-deaf",
		"one-way-follower-mute"}, cutsOneWay},
	{"partial partitions", []string{
		"bridge", "bridge-to-the-old-leader", "chained", "constrained", "hearsay",
		"old-leader-keeps-one-link",
		"partial-chain", "partial-chain-leader-at-the-end", "partial-hub", "partial-ring",
		"partial-ring-cold", "quorum-loss-hub", "two-leaves",
	}, func(s *scenario.Scenario) bool { return does(s, "cut") && !cutsOneWay(s) }},
	{"flapping", []string{"flapping-link", "flapping-node"},
		func(s *scenario.Scenario) bool { return count(s, "heal") > 5 }},
	{"a slow leader", []string{"slow-leader-short-pause", "slow-leader-long-pause"}, doing("pause")},
	{"delay", []string{"delay-spikes", "delay-beyond-the-timeouts", "slow-acknowledgements"},
		func(s *scenario.Scenario) bool { return first(s, "link").Link.Delay > s.Network.Delay }},
	{"loss of 30 %", []string{"loss-30-percent", "loss-30-percent-faster-heartbeats"},
		func(s *scenario.Scenario) bool { return first(s, "link").Link.Loss == 300_000 }},
	{"duplicated and reordered messages", []string{"duplicated-and-reordered"},
		func(s *scenario.Scenario) bool { return s.Network.Duplicate > 0 && s.Network.Reorder > 0 }},
	{"clock rates", []string{"clock-rates"}, func(s *scenario.Scenario) bool {
		return anyNode(s, func(n scenario.Node) bool { return n.ClockRatePPM != 0 })
	}},
	{"a voter restarts between vote and win", []string{"voter-restarts-after-its-vote"},
		func(s *scenario.Scenario) bool { return does(s, "crash") && does(s, "restart") }},
	{"a crash loses the vote", []string{"voter-crash-loses-its-vote"},
		func(s *scenario.Scenario) bool { return first(s, "crash").Unsynced == "lose" }},
	{"a crash keeps the vote", []string{"voter-crash-keeps-its-vote"},
		func(s *scenario.Scenario) bool { return first(s, "crash").Unsynced == "keep" }},
	{"a wiped disk", []string{"wiped-disk"},
		func(s *scenario.Scenario) bool { return first(s, "restart").Wipe }},
	{"an inflated term", []string{"inflated-term"}, func(s *scenario.Scenario) bool {
		return anyNode(s, func(n scenario.Node) bool { return n.Term > s.Begin.Term })
	}},
	{"observers and non-candidates", []string{"observers-and-non-candidates"},
		func(s *scenario.Scenario) bool {
			return anyNode(s, func(n scenario.Node) bool { return n.Observer }) &&
				anyNode(s, func(n scenario.Node) bool { return n.NotCandidate })
		}},
	{"more nodes than can vote", []string{"sixty-four-nodes"},
		func(s *scenario.Scenario) bool { return len(s.Nodes) == 64 && len(s.Election.Voters) == 32 }},
	{"priorities", []string{"priorities"}, func(s *scenario.Scenario) bool {
		return anyNode(s, func(n scenario.Node) bool { return n.Priority > 0 })
	}},
	{"profile blazingmq", []string{"blazingmq-profile"},
		func(s *scenario.Scenario) bool { return s.Profile == "blazingmq" }},
	{"reset links", []string{"reset-links"}, doing("reset")},
	{"the record and a minority", []string{"record-survives-every-minority", "record-lagging-voter",
		"record-minority-leader-publishes", "record-lost-disk"},
		func(s *scenario.Scenario) bool { return count(s, "publish") > 1 && wants(s, "record") }},
	{"a change of voters under faults", []string{"record-change-during-partition",
		"record-leader-dies-in-change", "record-replace-under-loss", "record-five-shrink-to-three"},
		func(s *scenario.Scenario) bool {
			faults := does(s, "crash") || does(s, "partition") || s.Network.Loss > 0
			return faults && wants(s, "voters")
		}},
	{"the leader is removed", []string{"record-leader-removed"}, func(s *scenario.Scenario) bool {
		return slices.Contains(first(s, "remove-voter").Remove, s.Begin.Leader)
	}},
	{"a node joins and becomes a voter", []string{"record-new-voter-lags",
		"record-one-grows-to-three"}, func(s *scenario.Scenario) bool {
		return does(s, "add-voter") && anyNode(s, func(n scenario.Node) bool { return n.Join })
	}},
	{"two operators", []string{"record-two-operators"},
		func(s *scenario.Scenario) bool { return wants(s, "refused") }},
	{"a removed node returns", []string{"record-removed-node-returns"},
		func(s *scenario.Scenario) bool { return wants(s, "not_elected") && does(s, "restart") }},
	{"a machine is replaced", []string{"record-replaced-machine"},
		func(s *scenario.Scenario) bool { return first(s, "restart").Wipe && first(s, "restart").Join }},
	{"an emergency", []string{"record-emergency"},
		func(s *scenario.Scenario) bool { return first(s, "restart").Lost != nil }},
}

func TestEverySituationHasItsFileAndEveryFileItsSituation(t *testing.T) {
	all, used := map[string]*scenario.Scenario{}, map[string]bool{}
	for _, sc := range scenarios(t) {
		all[sc.Name] = sc
	}
	for _, point := range covered {
		for _, name := range point.files {
			require.Contains(t, all, name, point.what)
			require.True(t, point.has(all[name]), "%s is not about %s", name, point.what)
			used[name] = true
		}
	}
	for name := range all {
		require.True(t, used[name], "%s is about nothing that covered names", name)
	}
}

// first is the first action that does this, or the zero one.
func first(s *scenario.Scenario, do string) (action scenario.Action) {
	for _, step := range s.Timeline {
		if step.Action.Do == do {
			return step.Action
		}
	}
	return action
}

func count(s *scenario.Scenario, do string) (n int) {
	for _, step := range s.Timeline {
		if step.Action.Do == do {
			n++
		}
	}
	return n
}

func does(s *scenario.Scenario, do string) bool { return count(s, do) > 0 }

func doing(do string) func(*scenario.Scenario) bool {
	return func(s *scenario.Scenario) bool { return does(s, do) }
}

func wants(s *scenario.Scenario, key string) bool {
	return slices.ContainsFunc(s.Expect, func(e scenario.Expectation) bool {
		return e.Want.Key == key
	})
}

func anyNode(s *scenario.Scenario, is func(scenario.Node) bool) bool {
	return slices.ContainsFunc(s.Nodes, is)
}

// crashed is how many nodes the first crash takes.
func crashed(s *scenario.Scenario) int { return len(first(s, "crash").Nodes) }

func leaderCrashes(s *scenario.Scenario) bool {
	return slices.Contains(first(s, "crash").Nodes, s.Begin.Leader)
}

// cutsOneWay reports whether the first cut leaves the way back open.
func cutsOneWay(s *scenario.Scenario) bool {
	pairs := first(s, "cut").Cut
	return len(pairs) > 0 && !slices.ContainsFunc(pairs, func(p scenario.Pair) bool {
		return slices.Contains(pairs, scenario.Pair{From: p.To, To: p.From})
	})
}
